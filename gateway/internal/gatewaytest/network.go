package gatewaytest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Network is a network of one host: net.Pipe, without a kernel.
type Network struct {
	conns  chan net.Conn
	done   chan struct{}
	closer sync.Once
}

// NewNetwork returns a network without connections.
func NewNetwork() *Network {
	return &Network{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *Network) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Network) Close() error {
	l.closer.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *Network) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "127.0.0.1:1" } // no other host reaches it

// Dial opens a connection, as http.Transport.DialContext does.
func (l *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- &Conn{Conn: there}:
		return here, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Conn is net/http's view of a connection. Once it is hijacked, closing it does
// nothing, like closing one of two descriptors.
type Conn struct {
	net.Conn
	mu    sync.Mutex
	taken bool
}

// RemoteAddr returns the address of a proxy, for the tests that trust it.
func (c *Conn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 1}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken {
		return nil
	}
	return c.Conn.Close()
}
