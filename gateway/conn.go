package gateway

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// patientListener accepts patientConns.
type patientListener struct {
	net.Listener
	patience    time.Duration
	connections *connections // that count them; nil: they are not counted
	health      bool         // it serves health checks
}

func listen(l net.Listener, patience time.Duration) patientListener {
	return patientListener{Listener: l, patience: patience}
}

// counted returns l with its connections counted.
func (l patientListener) counted(among *connections, health bool) patientListener {
	l.connections, l.health = among, health
	return l
}

// Accept waits for the next connection for which there is room.
func (l patientListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.connections.accepted(err)
			return nil, err
		}
		conn := &patientConn{Conn: c, patience: l.patience, connections: l.connections}
		if l.connections.enter(conn, l.health) {
			limitUnsent(c)
			return conn, nil
		}
		c.Close()
	}
}

// patientConn is a connection that is closed once not a single byte could be written
// for a while. It stays open as long as bytes move, however slowly. It lies beneath
// TLS and HTTP, since neither can continue after a partial write failed (HTTP/2 would
// try, and wait once more). It therefore also ends requests that have no deadline of
// their own.
type patientConn struct {
	// Static after construction.
	net.Conn
	patience    time.Duration
	connections *connections // that count it; nil: it is not counted
	reserved    bool         // only requests for the health of the gateway are allowed

	counted bool // it is still counted; guarded by connections

	// readNow, if not nil, reads without waiting: nothing waits for input from this
	// client. Owned by the reader.
	readNow func([]byte) (int, error)

	// overdue, if not nil, reports whether writing must end although bytes move.
	// Owned by the writer.
	overdue func() bool
}

// errOverdue ends a write to a client for which the stream must not wait.
var errOverdue = errors.New("the stream had to end, and its client did not take the rest")

// patient returns the patientConn beneath c, or nil if there is none.
func patient(c net.Conn) *patientConn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	out, _ := c.(*patientConn)
	return out
}

// Read reads into p.
func (c *patientConn) Read(p []byte) (int, error) {
	if c.readNow != nil {
		return c.readNow(p)
	}
	return c.Conn.Read(p)
}

const (
	// looks is how many times a write checks, within its patience, whether bytes
	// moved: it ends at most 1/looks of its patience late.
	looks = 8
	// lookEvery is the longest time between two checks, since the stream may have to
	// end for another reason.
	lookEvery = time.Second
)

// Write writes p. It overrides any write deadline that was set before.
func (c *patientConn) Write(p []byte) (written int, err error) {
	for a := (attempt{c, time.Now()}); ; {
		if err := a.begin(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		if !a.again(n > 0, err) {
			return written, err
		}
		if c.overdue != nil && c.overdue() {
			return written, errOverdue
		}
	}
}

// writeAll writes several slices as if they were one. It may modify all.
func (c *patientConn) writeAll(all net.Buffers) error {
	for a := (attempt{c, time.Now()}); ; {
		if err := a.begin(); err != nil {
			return err
		}
		n, err := all.WriteTo(c.Conn)
		if !a.again(n > 0, err) {
			return err
		}
		if c.overdue != nil && c.overdue() {
			return errOverdue
		}
	}
}

// attempt is a write that may take several calls, as long as bytes move.
type attempt struct {
	conn  *patientConn
	moved time.Time // when a byte last moved, or when the attempt began
}

func (a *attempt) begin() error {
	now := time.Now()
	look := min(a.conn.patience/looks, lookEvery, a.moved.Add(a.conn.patience).Sub(now))
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
	if time.Since(a.moved) < a.conn.patience {
		return true
	}
	a.conn.Close()
	return false
}

// Close closes the connection and counts it out.
func (c *patientConn) Close() error {
	c.connections.leave(c)
	return c.Conn.Close()
}

// NetConn returns the connection beneath, as tls.Conn.NetConn does.
func (c *patientConn) NetConn() net.Conn { return c.Conn }

// beneath returns the connection at the bottom, the one that talks to the kernel.
func beneath(c net.Conn) net.Conn {
	for {
		wrapper, wraps := c.(interface{ NetConn() net.Conn })
		if !wraps {
			return c
		}
		c = wrapper.NetConn()
	}
}
