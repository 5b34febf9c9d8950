package gateway

import (
	"errors"
	"net"
	"time"
)

// poller is the operating system's side of a shard: non-blocking writes to
// connections that were taken from net/http, and what happens to them.
//
// Its methods are for the shard's goroutine only, except ring, which any goroutine
// may call.
type poller interface {
	// watch begins to report on a handle, under a key. It may report more than once
	// that a client has ended its side.
	watch(h handle, key uint64) error
	// await says whether to report also when the handle can take bytes: at once if it
	// can now.
	await(h handle, key uint64, writable bool) error
	// wait appends what happened, and returns at the end of the timeout at the
	// latest; a negative timeout never ends. ring ends the wait.
	wait(dst []notice, timeout time.Duration) ([]notice, error)
	ring()
	// write writes bytes without waiting. If it would have to wait, it returns
	// errBlocked and the number of bytes taken so far.
	write(h handle, p []byte) (int, error)
	writeAll(h handle, p [][]byte) (int, error)
	// finish ends the writing. From then on what the client sends is reported as
	// readable, to be discarded, and its end is reported as gone.
	finish(h handle, key uint64) error
	// discard reads and drops input; false: the client has closed its side too.
	discard(h handle) bool
	// shut frees the poller itself.
	shut()
}

// sockets is what a gateway needs to carry streams itself; nil where it cannot.
type sockets interface {
	newPoller() (poller, error)
	// take makes a handle of a connection, which the caller closes afterwards. It
	// fails for a connection that cannot be taken.
	take(c net.Conn) (handle, error)
	close(h handle)
}

// handle identifies a connection to its poller; on Unix it is a file descriptor.
type handle int32

// notice is what happened to a handle.
type notice struct {
	key      uint64
	gone     bool // the client is no longer there
	ended    bool // it sends nothing more, but may still read
	writable bool
	readable bool
}

// errBlocked means that the connection takes no more bytes now.
var errBlocked = errors.New("the connection takes no more bytes now")
