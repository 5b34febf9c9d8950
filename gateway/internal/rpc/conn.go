package rpc

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Timeout is how long a connection may take to become a gRPC connection and open
// its first call, and how long the message of a call may make no progress.
const Timeout = 10 * time.Second

// listener accepts connections that track the bytes held by their transports.
type listener struct{ net.Listener }

// Accept waits for the next connection.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &clientConn{Conn: c, parcels: map[*parcel]struct{}{}}
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.silent = time.AfterFunc(Timeout, func() { conn.Close() })
	return conn, nil
}

// clientConn is a gRPC connection. It is closed if it opens no call for Timeout,
// and tracks the bytes that its transport still holds.
type clientConn struct {
	net.Conn // static after construction

	mu      sync.Mutex // guards the following fields
	silent  *time.Timer
	parcels map[*parcel]struct{} // nil: the connection is closed
}

// called records that the connection opened a call. c may be nil.
func (c *clientConn) called() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent.Stop()
}

// NetConn returns the connection beneath, as tls.Conn.NetConn does.
func (c *clientConn) NetConn() net.Conn { return c.Conn }

// Close closes the connection, and releases the parcels that its transport
// still holds.
func (c *clientConn) Close() error {
	c.mu.Lock()
	parcels := c.parcels
	c.parcels = nil
	c.silent.Stop()
	c.mu.Unlock()
	for p := range parcels {
		p.settle()
	}
	return c.Conn.Close()
}

// carry remembers a parcel. It returns false if the connection is closed.
func (c *clientConn) carry(p *parcel) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parcels == nil {
		return false
	}
	c.parcels[p] = struct{}{}
	return true
}

func (c *clientConn) forget(p *parcel) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.parcels, p)
}

// securing does the TLS handshakes of connections within the limits on handshakes.
type securing struct {
	credentials.TransportCredentials
	handshakes *netconn.Handshakes // nil: there are none
}

// ServerHandshake implements credentials.TransportCredentials.
func (s securing) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	own, ok := raw.(*clientConn)
	if !ok || s.handshakes == nil {
		return s.TransportCredentials.ServerHandshake(raw)
	}
	accepted, ok := own.Conn.(*netconn.StallTimeoutConn)
	if !ok {
		return s.TransportCredentials.ServerHandshake(raw)
	}
	h, err := s.handshakes.Begin(context.Background(), accepted)
	if err != nil {
		raw.Close()
		return nil, nil, err
	}
	conn, info, err := s.TransportCredentials.ServerHandshake(raw)
	return conn, info, h.End(err)
}

// Clone implements credentials.TransportCredentials.
func (s securing) Clone() credentials.TransportCredentials {
	return securing{s.TransportCredentials.Clone(), s.handshakes}
}

// connCredentials let a call find its connection.
type connCredentials struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c connCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if own, ok := raw.(*clientConn); ok && err == nil {
		info = connInfo{info, own}
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (c connCredentials) Clone() credentials.TransportCredentials {
	return connCredentials{c.TransportCredentials.Clone()}
}

// connInfo is what a call has about its connection.
type connInfo struct {
	credentials.AuthInfo
	conn *clientConn
}

// Unwrap returns what the transport knows about the connection, such as the state of its TLS.
func (i connInfo) Unwrap() credentials.AuthInfo { return i.AuthInfo }

// connOf returns the connection of a call, or nil if it was not accepted by Serve.
func connOf(ctx context.Context) *clientConn {
	if p, known := peer.FromContext(ctx); known {
		if info, ok := p.AuthInfo.(connInfo); ok {
			return info.conn
		}
	}
	return nil
}
