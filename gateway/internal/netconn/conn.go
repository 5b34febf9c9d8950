package netconn

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/loglimit"
)

// Listener accepts StallTimeoutConns.
type Listener struct {
	net.Listener
	patience    time.Duration
	log         *slog.Logger // of errors; it leaves out lines
	connections *Connections // that count them; nil: they are not counted
	health      bool         // it serves health checks
}

// acceptErrorsPerMinute is how many errors of a listener are logged: net/http and gRPC try again
// after milliseconds.
const acceptErrorsPerMinute = 10

// Listen returns a listener whose connections are closed once they take no byte for the
// timeout. It logs the errors with which the system refuses connections.
func Listen(l net.Listener, patience time.Duration, log *slog.Logger) Listener {
	return Listener{Listener: l, patience: patience, log: loglimit.New(log, acceptErrorsPerMinute)}
}

// Counted returns l with its connections counted.
func (l Listener) Counted(among *Connections, health bool) Listener {
	l.connections, l.health = among, health
	return l
}

// Accept waits for the next connection within the limit.
func (l Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.refused(err)
			return nil, err
		}
		conn := &StallTimeoutConn{Conn: c, Timeout: l.patience, connections: l.connections}
		if l.connections.enter(conn, l.health) {
			limitUnsent(c)
			return conn, nil
		}
		c.Close()
	}
}

// refused handles the error with which the system refused a new connection.
func (l Listener) refused(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	if !l.connections.exhausted(err) {
		l.log.Error("a connection cannot be accepted", "error", err)
	}
}

// StallTimeoutConn is a connection that is closed once not a single byte could be written
// for a while. It stays open as long as bytes move, however slowly. It lies beneath
// TLS and HTTP, since neither can continue after a partial write failed (HTTP/2 would
// try, and wait once more). It therefore also ends requests that have no deadline of
// their own.
type StallTimeoutConn struct {
	// Static after construction.
	net.Conn
	Timeout     time.Duration
	connections *Connections // that count it; nil: it is not counted
	reserved    bool         // only requests for the health of the gateway are allowed

	counted bool // it is still counted; guarded by connections

	// HearAtMost, if not 0, is how many bytes the client may send: then reads fail. Owned by the reader.
	HearAtMost int64

	heard   atomic.Int64 // bytes that the client has sent
	request atomic.Int64 // how many of them had been read once the head of the last request of HTTP/1 was

	// handshake is that of TLS, if it goes on. Owned by whoever does it.
	handshake *Handshake

	// ReadNow, if not nil, reads without waiting: no read on this connection may
	// block. Owned by the reader.
	ReadNow func([]byte) (int, error)

	// WriteNow, if not nil, takes all that is written: no write on this connection may block.
	// Owned by the writer.
	WriteNow func([]byte) (int, error)

	// overdue, if not nil, reports whether writing must end although bytes move.
	// Owned by the writer.
	Overdue func() bool
}

// ErrOverdue ends a write when the stream must not wait for its client any
// longer.
var ErrOverdue = errors.New("the stream had to end, and its client did not take the rest")

// Of returns the StallTimeoutConn beneath c, or nil if there is none.
func Of(c net.Conn) *StallTimeoutConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	out, _ := c.(*StallTimeoutConn)
	return out
}

// ErrHeardTooMuch ends a read when the client has sent more than it may.
var ErrHeardTooMuch = errors.New("the client sends too much")

// Heard returns how many bytes were read.
func (c *StallTimeoutConn) Heard() int64 { return c.heard.Load() }

// HeardSinceRequest returns how many bytes were read since the head of the last request of HTTP/1.
func (c *StallTimeoutConn) HeardSinceRequest() int { return int(c.heard.Load() - c.request.Load()) }

// Read reads into p.
func (c *StallTimeoutConn) Read(p []byte) (int, error) {
	if c.HearAtMost > 0 && c.heard.Load() >= c.HearAtMost {
		return 0, ErrHeardTooMuch
	}
	n, err := c.read(p)
	c.heard.Add(int64(n))
	return n, err
}

func (c *StallTimeoutConn) read(p []byte) (int, error) {
	if c.ReadNow != nil {
		return c.ReadNow(p)
	}
	if c.handshake != nil {
		return c.handshake.read(c.Conn, p)
	}
	return c.Conn.Read(p)
}

const (
	// ChecksPerTimeout is how many times a write checks, within its patience, whether
	// bytes moved: it ends late by at most 1/ChecksPerTimeout of its patience.
	ChecksPerTimeout = 8
	// CheckEvery is the longest time between two checks, since the stream may have to
	// end for another reason.
	CheckEvery = time.Second
)

// Write writes p. It overrides any write deadline that was set before.
func (c *StallTimeoutConn) Write(p []byte) (written int, err error) {
	if c.WriteNow != nil {
		return c.WriteNow(p)
	}
	if c.handshake != nil {
		return c.handshake.write(c.write, p)
	}
	return c.write(p)
}

func (c *StallTimeoutConn) write(p []byte) (written int, err error) {
	for a := (attempt{c, time.Now()}); ; {
		if err := a.begin(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		if !a.again(n > 0, err) {
			return written, err
		}
		if c.Overdue != nil && c.Overdue() {
			return written, ErrOverdue
		}
	}
}

// WriteAll writes several slices as if they were one. It may modify all.
func (c *StallTimeoutConn) WriteAll(all net.Buffers) error {
	for a := (attempt{c, time.Now()}); ; {
		if err := a.begin(); err != nil {
			return err
		}
		n, err := all.WriteTo(c.Conn)
		if !a.again(n > 0, err) {
			return err
		}
		if c.Overdue != nil && c.Overdue() {
			return ErrOverdue
		}
	}
}

// attempt is a write that may take several calls, as long as bytes move.
type attempt struct {
	conn  *StallTimeoutConn
	moved time.Time // when a byte last moved, or when the attempt began
}

func (a *attempt) begin() error {
	now := time.Now()
	look := min(a.conn.Timeout/ChecksPerTimeout, CheckEvery, a.moved.Add(a.conn.Timeout).Sub(now))
	return a.conn.SetWriteDeadline(now.Add(look))
}

// again reports whether to write the rest, after a write with this outcome.
func (a *attempt) again(moved bool, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if moved {
		a.moved = time.Now()
	}
	if time.Since(a.moved) < a.conn.Timeout {
		return true
	}
	a.conn.Close()
	return false
}

// Close closes the connection and counts it out.
func (c *StallTimeoutConn) Close() error {
	c.connections.leave(c)
	return c.Conn.Close()
}

// NetConn returns the connection beneath, as tls.Conn.NetConn does.
func (c *StallTimeoutConn) NetConn() net.Conn { return c.Conn }

// Bottom returns the connection at the bottom, the one of the kernel.
func Bottom(c net.Conn) net.Conn {
	for {
		wrapper, wraps := c.(interface{ NetConn() net.Conn })
		if !wraps {
			return c
		}
		c = wrapper.NetConn()
	}
}
