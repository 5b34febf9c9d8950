package netconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
)

// secureListener accepts connections whose TLS handshake is complete. Each handshake has a goroutine,
// which ends with it.
type secureListener struct {
	// Static after construction.
	Listener
	config     *tls.Config
	handshakes *Handshakes

	ready chan accepted
	begin sync.Once
	ctx   context.Context // ends with Close
	shut  context.CancelFunc
	ended chan struct{} // there is nothing more to accept, since the listener beneath was closed
}

type accepted struct {
	conn net.Conn
	err  error
}

// Secure returns a listener that accepts the connections of l after their TLS handshake, for HTTP. If the listener beneath is
// closed, those whose handshakes have begun are still accepted.
func (l Listener) Secure(c *tls.Config, handshakes *Handshakes) net.Listener {
	c = c.Clone()
	c.DynamicRecordSizingDisabled = true // an event is one record, also after a second without any
	for _, protocol := range []string{"h2", "http/1.1"} {
		if !slices.Contains(c.NextProtos, protocol) {
			c.NextProtos = append(slices.Clip(c.NextProtos), protocol)
		}
	}
	out := &secureListener{Listener: l, config: c, handshakes: handshakes, ready: make(chan accepted), ended: make(chan struct{})}
	out.ctx, out.shut = context.WithCancel(context.Background())
	return out
}

// Accept waits for the next connection whose handshake is complete.
func (l *secureListener) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.acceptAll() })
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.ended:
	case <-l.ctx.Done():
	}
	return nil, net.ErrClosed
}

// Close closes the listener, and ends the handshakes that go on.
func (l *secureListener) Close() error {
	l.shut()
	return l.Listener.Close()
}

// acceptAll begins the handshakes of all connections.
func (l *secureListener) acceptAll() {
	defer close(l.ended)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		c, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if !l.give(accepted{err: err}) { // net/http waits before it comes back
				return
			}
			continue
		}
		conn := c.(*StallTimeoutConn)
		h, err := l.handshakes.Begin(l.ctx, conn)
		if err != nil {
			l.log.Debug("a TLS handshake is refused", "address", conn.RemoteAddr().String(), "error", err)
			conn.Close()
			continue
		}
		running.Go(func() { l.handshake(conn, h) })
	}
}

// give passes a connection on. It returns false if nobody takes it any more.
func (l *secureListener) give(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// handshake does the handshake of a connection, and passes it on.
func (l *secureListener) handshake(conn *StallTimeoutConn, h *Handshake) {
	secure := tls.Server(conn, l.config)
	err := h.End(secure.HandshakeContext(h.Context()))
	if err == nil {
		if !l.give(accepted{conn: secure}) {
			conn.Close()
		}
		return
	}
	defer conn.Close()
	l.log.Debug("a TLS handshake failed", "address", conn.RemoteAddr().String(), "error", err)
	if wrong := (tls.RecordHeaderError{}); errors.As(err, &wrong) && wrong.Conn != nil && isHTTP(wrong.RecordHeader) {
		_, _ = io.WriteString(wrong.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis port serves HTTPS: want https:// in the URL.\n")
	}
}

// isHTTP reports whether the first bytes of a client look like a request of HTTP without TLS.
func isHTTP(head [5]byte) bool {
	switch string(head[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PRI *":
		return true
	}
	return false
}
