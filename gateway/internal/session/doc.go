// Package session has what is sent on one stream, whatever carries it: hello, the events of its
// watches, bookmarks, heartbeats, goodbye.
//
// It is also the goroutine pump, which carries the streams that the shards do not: each has a
// goroutine, which writes to the one client. Where possible, it hijacks the connection from net/http,
// so that a waiting stream costs little more than its stack.
package session
