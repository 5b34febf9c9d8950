// Package direct is the goroutine pump: each stream has a goroutine, which writes to
// the one client. Where possible, it hijacks the connection from net/http, so that a
// waiting stream costs little more than its stack.
package direct
