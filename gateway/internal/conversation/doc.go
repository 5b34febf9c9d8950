// Package conversation produces the content of one stream, whatever carries its
// bytes: hello, the events of its watches, bookmarks, heartbeats, goodbye.
package conversation
