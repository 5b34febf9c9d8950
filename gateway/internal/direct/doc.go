// Package direct is the goroutine pump: each stream has a goroutine, which writes to the
// one client. Where it can, it takes the connection from net/http, so that a stream that
// waits costs little more than its stack.
package direct
