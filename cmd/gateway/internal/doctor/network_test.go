package doctor

import (
	"context"
	"errors"
	"net"
	"sync"
)

// network is a network in memory. Dialling yields the next port of the caller's address.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener // guarded by mu
	port      int                  // guarded by mu: the last one
}

func newNetwork() *network { return &network{listeners: map[string]*listener{}, port: 40000} }

// listen listens under a host and port, with an address that peers see.
func (n *network) listen(name, address string) *listener {
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{}), address: tcp(address)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[name] = l
	return l
}

func tcp(address string) *net.TCPAddr {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		panic(err)
	}
	return a
}

// from returns the function that dials from an address.
func (n *network) from(ip string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, name string) (net.Conn, error) {
		n.mu.Lock()
		l := n.listeners[name]
		n.port++
		local := &net.TCPAddr{IP: net.ParseIP(ip), Port: n.port}
		n.mu.Unlock()
		if l == nil {
			return nil, errors.New("connection refused")
		}
		here, there := net.Pipe()
		select {
		case l.conns <- &conn{Conn: there, local: l.address, remote: local}:
			return &conn{Conn: here, local: local, remote: l.address}, nil
		case <-l.done:
			return nil, errors.New("connection refused")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// listener is one listener of a network.
type listener struct {
	conns   chan net.Conn
	done    chan struct{}
	closer  sync.Once
	address net.Addr
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.closer.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.address }

// conn is a connection with addresses.
type conn struct {
	net.Conn
	local, remote net.Addr
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }
