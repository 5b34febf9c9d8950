package gateway

import "net"

// lookout is the system's side of solos: it notices what their clients do, while
// their goroutines wait for something else or write.
//
// All methods may be called from any goroutine.
type lookout interface {
	// watch begins to tell a client what happens on its side of a connection, and
	// ends when the connection is closed. The key is for forget.
	watch(c net.Conn, who *farSide) (key uint64, err error)
	// read reads what has come to a connection at the bottom, without waiting:
	// os.ErrDeadlineExceeded if it is nothing.
	read(c net.Conn, p []byte) (int, error)
	// forget must be called when the connection is about to be closed.
	forget(key uint64)
	// close gives the lookout back, and tells everybody that their clients left.
	close()
}

// farSide is the client's side of a connection, as far as it is told.
type farSide struct {
	gone  chan struct{} // closed once it left: it closed its side, or both
	input chan struct{} // holds one when there may be something to read; nil: nobody reads
}

// heard takes note of bytes that came.
func (c *farSide) heard() {
	select {
	case c.input <- struct{}{}:
	default: // noted already, or nobody reads
	}
}
