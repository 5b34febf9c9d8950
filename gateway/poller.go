package gateway

import (
	"errors"
	"net"
	"time"
)

// poller is the system's side of a shard: non-blocking writes to connections that
// were taken from net/http, and what happens to them.
//
// Its methods belong to the shard's goroutine, ring to any.
type poller interface {
	// watch begins to tell of a handle, under a key. That a client has ended its side
	// may be told more than once.
	watch(h handle, key uint64) error
	// await says whether to tell as well when the handle takes bytes, or takes them
	// again: at once if it does now.
	await(h handle, key uint64, writable bool) error
	// wait appends what happened, at the latest at the end of the timeout; a
	// negative one never ends. ring ends it.
	wait(dst []notice, timeout time.Duration) ([]notice, error)
	ring()
	// write hands bytes over, without waiting: errBlocked where it would, with
	// what was taken until then.
	write(h handle, p []byte) (int, error)
	writeAll(h handle, p [][]byte) (int, error)
	// finish says that nothing more will be written, and discards what the
	// client sends from now on; its end is told as gone.
	finish(h handle, key uint64) error
	// discard reads and forgets; false: the client has closed its side too.
	discard(h handle) bool
	// shut gives the poller itself back.
	shut()
}

// sockets is what a gateway needs to carry streams itself: nil where it cannot.
type sockets interface {
	newPoller() (poller, error)
	// take makes a handle of a connection, which the caller closes afterwards.
	// It fails for a connection that cannot be had.
	take(c net.Conn) (handle, error)
	close(h handle)
}

// handle is a connection to its poller; on Unix a file descriptor.
type handle int32

// notice is what happened to a handle.
type notice struct {
	key      uint64
	gone     bool // the client is not there any more
	ended    bool // it sends nothing more, and may still read
	writable bool
	readable bool
}

// errBlocked: the connection takes no more bytes now.
var errBlocked = errors.New("the connection takes no more bytes now")

func lengthOf(bs [][]byte) (n int) {
	for _, b := range bs {
		n += len(b)
	}
	return n
}
