package poll

import (
	"net"
	"sync/atomic"
)

// HangupWatcher is the operating system's side of hijacked streams: it notices what
// their clients do while their goroutines wait for something else or write.
//
// All methods may be called from any goroutine.
type HangupWatcher interface {
	// Watch begins to report what happens on a client's side of a connection, and
	// ends when the connection is closed. The key is for Forget.
	Watch(c net.Conn, who *FarSide) (key uint64, err error)
	// Read reads, without waiting, what has arrived on a connection at the bottom. If
	// that is nothing, it returns os.ErrDeadlineExceeded.
	Read(c net.Conn, p []byte) (int, error)
	// Forget must be called when the connection is about to be closed.
	Forget(key uint64)
	// Close frees the hangup watcher, and reports to every stream that its client left.
	Close()
}

// FarSide is the client's side of a connection, as far as it is known.
type FarSide struct {
	// Static after construction.
	Reads bool          // what the client sends is read
	News  chan struct{} // holds one when anything here may have changed, or may be read

	// Atomic.
	Ended atomic.Bool // the client sends nothing more, but may still read
	Gone  atomic.Bool // the client is no longer there
}

// NewFarSide returns the side of a client that is there. If reads is set, what it sends is
// read.
func NewFarSide(reads bool) *FarSide {
	return &FarSide{Reads: reads, News: make(chan struct{}, 1)}
}

// Heard signals that there is news.
func (c *FarSide) Heard() {
	select {
	case c.News <- struct{}{}:
	default: // already signalled
	}
}

// Left records that the client is gone.
func (c *FarSide) Left() {
	c.Gone.Store(true)
	c.Heard()
}
