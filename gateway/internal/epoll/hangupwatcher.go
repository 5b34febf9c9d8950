package epoll

import (
	"net"
	"sync/atomic"
)

// HangupWatcher is the operating system's side of hijacked streams: it observes the
// client's side while their goroutines wait for something else or write.
//
// All methods may be called from any goroutine.
type HangupWatcher interface {
	// Watch begins to report events on a client's side of a connection, and ends
	// when the connection is closed. The key is for Forget.
	Watch(c net.Conn, who *FarSide) (key uint64, err error)
	// Read reads, without waiting, the available input of a bottom connection. If
	// there is none, it returns os.ErrDeadlineExceeded.
	Read(c net.Conn, p []byte) (int, error)
	// Forget must be called when the connection is about to be closed.
	Forget(key uint64)
	// Close frees the hangup watcher, and reports to every stream that its client
	// disconnected.
	Close()
}

// FarSide is the client's side of a connection, as far as it is known.
type FarSide struct {
	// Static after construction.
	Reads bool          // input of the client is read
	News  chan struct{} // holds one when the state may have changed, or input may be available

	// Atomic.
	Ended atomic.Bool // the client sends nothing more, but may still read
	Gone  atomic.Bool // the client disconnected
}

// NewFarSide returns the side of a connected client. If reads is set, its input is
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
