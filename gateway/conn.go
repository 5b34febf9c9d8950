package gateway

import (
	"errors"
	"net"
	"os"
	"time"
)

// patientListener accepts patientConns.
type patientListener struct {
	net.Listener
	patience time.Duration
}

func listen(l net.Listener, patience time.Duration) net.Listener {
	return patientListener{l, patience}
}

// Accept waits for the next connection.
func (l patientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &patientConn{Conn: c, patience: l.patience}, nil
}

// patientConn is a connection that is closed once no byte at all could be
// written for a while, and goes on for as long as bytes move, however slowly. It
// lies beneath TLS and beneath HTTP, since neither can go on after a write that
// failed in its middle (HTTP/2 would try, and wait once more). So it also ends
// requests that have no deadline of their own.
type patientConn struct {
	net.Conn
	patience time.Duration
}

// looks is how often, while its patience lasts, a write looks whether bytes
// moved: it ends after at most 1/looks more than its patience.
const looks = 8

// Write writes p. It takes over from any write deadline that was set before.
func (c *patientConn) Write(p []byte) (written int, err error) {
	moved := time.Now()
	for now := moved; ; now = time.Now() {
		look := min(c.patience/looks, moved.Add(c.patience).Sub(now))
		if err := c.SetWriteDeadline(now.Add(look)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		if n > 0 {
			moved = time.Now()
		}
		if time.Since(moved) >= c.patience {
			c.Close()
			return written, err
		}
	}
}

// NetConn returns the connection beneath, as tls.Conn.NetConn does.
func (c *patientConn) NetConn() net.Conn { return c.Conn }
