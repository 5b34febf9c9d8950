package wire

// Outlet takes the bytes of a session, in order. It may keep them until the next
// flush of the pump, but no longer.
type Outlet interface{ Write(p []byte) }

// Sender is an outlet with a client at its end. After a failure it does nothing.
type Sender interface {
	Outlet
	Flush()         // sends the buffered bytes
	End()           // the last flush, which ends the body
	Sent() int      // bytes, without the framing
	Failure() error // the first one
	TimedOut() bool // the failure is that the client did not read
}
