package epoll

import (
	"errors"
	"net"
	"time"
)

// Poller is the operating system's side of a shard: non-blocking writes to
// connections that were hijacked from net/http, and their events.
//
// Its methods are for the shard's goroutine only, except Ring, which any goroutine
// may call.
type Poller interface {
	// Watch begins to report on a handle, under a key. It may report more than once
	// that a client has ended its side.
	Watch(h Handle, key uint64) error
	// Await sets whether to also report when the handle can take bytes: at once if it
	// can now.
	Await(h Handle, key uint64, writable bool) error
	// Wait appends the events, and returns at the end of the timeout at the
	// latest; a negative timeout never ends. Ring ends the wait.
	Wait(dst []Notice, timeout time.Duration) ([]Notice, error)
	Ring()
	// Write writes bytes without waiting. If it would have to wait, it returns
	// ErrBlocked and the number of bytes taken so far.
	Write(h Handle, p []byte) (int, error)
	// WriteAll is Write of several slices. If more follows, which is written at once, a partial packet
	// may wait for that.
	WriteAll(h Handle, p [][]byte, more bool) (int, error)
	// Send writes a file from an offset on, as Write does.
	Send(h Handle, f *File, from int) (int, error)
	// Finish ends the writing. From then on input of the client is reported as
	// readable, to be discarded, and its end is reported as gone.
	Finish(h Handle, key uint64) error
	// Discard reads and drops input; false: the client has closed its side too.
	Discard(h Handle) bool
	// Shut frees the poller itself.
	Shut()
}

// Sockets lets a gateway carry streams itself; nil where that is not supported.
type Sockets interface {
	NewPoller() (Poller, error)
	// Take makes a handle of a connection, which the caller closes afterwards. It
	// fails for a connection that cannot be taken.
	Take(c net.Conn) (Handle, error)
	Close(h Handle)
}

// Handle identifies a connection to its poller; on Unix it is a file descriptor.
type Handle int32

// Notice is an event of a handle.
type Notice struct {
	Key      uint64
	Gone     bool // the client disconnected
	Ended    bool // it sends nothing more, but may still read
	Writable bool
	Readable bool
}

// ErrBlocked means that the connection takes no more bytes now.
var ErrBlocked = errors.New("the connection takes no more bytes now")

// SlabFileSmallest is the smallest size of a slice that may be sent from a file that
// several connections share: a slice of that size must never change afterwards, since
// the file identifies it by its address.
const SlabFileSmallest = 16 << 10 // smaller ones go into one call with others

// HeardAtMost is how many bytes a client may send over TLS after its request for a stream, as they are on the network: a
// record costs time, however little is in it, and crypto/tls keeps what is not complete. The client has nothing to say but
// what TLS itself requires.
const HeardAtMost = 8 << 10
