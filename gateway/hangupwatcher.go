package gateway

import (
	"net"
	"sync/atomic"
)

// hangupWatcher is the operating system's side of hijacked streams: it notices what
// their clients do while their goroutines wait for something else or write.
//
// All methods may be called from any goroutine.
type hangupWatcher interface {
	// watch begins to report what happens on a client's side of a connection, and
	// ends when the connection is closed. The key is for forget.
	watch(c net.Conn, who *farSide) (key uint64, err error)
	// read reads, without waiting, what has arrived on a connection at the bottom. If
	// that is nothing, it returns os.ErrDeadlineExceeded.
	read(c net.Conn, p []byte) (int, error)
	// forget must be called when the connection is about to be closed.
	forget(key uint64)
	// close frees the hangup watcher, and reports to every stream that its client left.
	close()
}

// farSide is the client's side of a connection, as far as it is known.
type farSide struct {
	// Static after construction.
	reads bool          // what the client sends is read
	news  chan struct{} // holds one when anything here may have changed, or may be read

	// Atomic.
	ended atomic.Bool // the client sends nothing more, but may still read
	gone  atomic.Bool // the client is no longer there
}

func newFarSide(reads bool) *farSide {
	return &farSide{reads: reads, news: make(chan struct{}, 1)}
}

// heard signals that there is news.
func (c *farSide) heard() {
	select {
	case c.news <- struct{}{}:
	default: // already signalled
	}
}

// left records that the client is gone.
func (c *farSide) left() {
	c.gone.Store(true)
	c.heard()
}
