package histories

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// links are the load balancers of all histories under way, by the host name that a
// gateway dials for its upstream.
var links sync.Map

// linked counts the names given out.
var linked atomic.Uint64

// init keeps the requests of all sources in memory: the gateway source derives its transport
// from the default one.
func init() { http.DefaultTransport = &http.Transport{DialContext: dial} }

func dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, ":")
	l, ok := links.Load(host)
	if !ok {
		return nil, errors.New("no such host")
	}
	return l.(*link).dial(ctx)
}

// listener is where a node accepts connections in memory.
type listener struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func newListener() *listener {
	return &listener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It is called once.
func (l *listener) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

var errRefused = errors.New("connection refused")

func (l *listener) connect(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.accepted <- there:
		return here, nil
	case <-l.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// link is the upstream of a gateway: a load balancer in front of several gateways,
// which may stall, cut and refuse.
type link struct {
	of, host string // static after construction
	guards   bool   // it leads to the second gateways; static after construction
	mixed    atomic.Bool
	served   atomic.Pointer[node] // answers the request for the watch; nil: none does

	mu      sync.Mutex // guards the following fields
	targets []*node
	target  int // of the next request
	turns   bool
	refuses bool
	conns   []*conn
}

// dial connects to the target, and switches to another one for the next request if
// the link takes turns.
func (l *link) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	to, refuses := l.targets[l.target%len(l.targets)], l.refuses
	at := to.listener.Load()
	if l.guards {
		at = to.guardListener.Load()
	}
	if l.turns {
		l.target++
	}
	l.mu.Unlock()
	if refuses || at == nil {
		return nil, errRefused
	}
	pipe, err := at.connect(ctx)
	if err != nil {
		return nil, err
	}
	c := newConn(pipe)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, nil
}

// newLink returns a link to some nodes, for requests to its host.
func newLink(of string, targets []*node) *link {
	l := &link{of: of, host: fmt.Sprintf("link-%d.localhost", linked.Add(1)), targets: targets} // a name that gateways serve
	links.Store(l.host, l)
	return l
}

// each calls f for the connections that were made.
func (l *link) each(f func(*conn)) {
	l.mu.Lock()
	conns := slices.Clone(l.conns)
	l.mu.Unlock()
	for _, c := range conns {
		f(c)
	}
}

// flows reports whether nothing is held back.
func (l *link) flows() bool {
	flows := true
	l.each(func(c *conn) { flows = flows && c.flows() })
	return flows
}

// stall lets n more bytes through, and then none.
func (l *link) stall(n int) { l.each(func(c *conn) { c.allow(n) }) }

// free lets everything through.
func (l *link) free() { l.each(func(c *conn) { c.allow(-1) }) }

// cut breaks the connections.
func (l *link) cut() {
	l.each(func(c *conn) { _ = c.Close() })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = nil
}

// set changes the behavior of the balancer.
func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// conn is the client's end of a connection. The server's bytes pass through a
// goroutine that can hold them back.
type conn struct {
	net.Conn          // to the server
	arrives  net.Conn // what the server wrote
	once     sync.Once
	closed   chan struct{}

	mu      sync.Mutex // guards the following fields
	allowed int        // bytes that may still pass; -1: any number
	changed chan struct{}
}

func newConn(server net.Conn) *conn {
	arrives, passes := net.Pipe()
	c := &conn{Conn: server, arrives: arrives, closed: make(chan struct{}), allowed: -1, changed: make(chan struct{})}
	go c.carry(passes)
	return c
}

// carry forwards the server's bytes, until either end is closed.
func (c *conn) carry(to net.Conn) {
	defer to.Close()
	defer c.once.Do(func() { close(c.closed) })
	buffer := make([]byte, 4<<10)
	for {
		n, err := c.Conn.Read(buffer)
		for rest := buffer[:n]; len(rest) > 0; {
			may := c.await(len(rest))
			if may == 0 {
				return
			}
			if _, err := to.Write(rest[:may]); err != nil {
				return
			}
			rest = rest[may:]
		}
		if err != nil {
			return
		}
	}
}

// await waits until bytes may pass, and returns how many of n; 0 if the connection
// was closed.
func (c *conn) await(n int) int {
	for {
		c.mu.Lock()
		may, changed := c.allowed, c.changed
		if may > 0 {
			may = min(may, n)
			c.allowed -= may
		}
		c.mu.Unlock()
		switch {
		case may < 0:
			return n
		case may > 0:
			return may
		}
		select {
		case <-changed:
		case <-c.closed:
			return 0
		}
	}
}

func (c *conn) flows() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.allowed < 0
}

func (c *conn) allow(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed = n
	close(c.changed)
	c.changed = make(chan struct{})
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) { return c.arrives.Read(p) }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	_ = c.arrives.Close()
	return c.Conn.Close()
}
