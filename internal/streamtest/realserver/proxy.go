package realserver

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Side is one of the two ends of a connection.
type Side uint8

// The two sides.
const (
	Client   Side = iota // connected to the proxy: the source
	Upstream             // the proxy connected to it
)

// Proxy is a TCP proxy from an address of its own to a target. Safe for
// concurrent use. It ends with its test.
type Proxy struct {
	// Static after construction.
	t       testing.TB
	address string
	running sync.WaitGroup // the accept loop and the links

	// Atomic.
	weather            atomic.Pointer[weather]
	toClient, toTarget atomic.Int64
	accepted           atomic.Int64

	mu       sync.Mutex // guards what follows
	target   string
	listener *listener // nil while it refuses
	links    map[*link]struct{}
	closed   bool
}

// NewProxy returns a proxy to a target, host:port, which may be changed later.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{t: t, address: l.Addr().String(), target: target, links: map[*link]struct{}{}}
	p.weather.Store(newWeather())
	p.mu.Lock()
	p.listen(l)
	p.mu.Unlock()
	t.Cleanup(p.Close)
	return p
}

// Addr returns the address to connect to, host:port. It never changes.
func (p *Proxy) Addr() string { return p.address }

// SetTarget sends new connections somewhere else. Existing ones stay where they are.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Cut closes every connection on both sides with a reset (RST), and returns when
// that is done. New ones are accepted as before.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := p.all()
	p.mu.Unlock()
	for _, l := range links {
		l.cancel()
	}
	for _, l := range links {
		<-l.ended
	}
}

// HalfClose sends the end of the stream (FIN) to one side of every connection and
// discards further bytes for it; bytes from it are forwarded. Heal does not
// restore such a connection.
func (p *Proxy) HalfClose(side Side) {
	p.mu.Lock()
	links := p.all()
	p.mu.Unlock()
	for _, l := range links {
		l.halfClose(side)
	}
}

// Stall stops all bytes both ways, and closes nothing. New connections are
// accepted, and hang.
func (p *Proxy) Stall() { p.change(func(w *weather) { w.stalled = true }) }

// Delay makes every byte arrive d later than it would have. The throughput stays the
// same.
func (p *Proxy) Delay(d time.Duration) { p.change(func(w *weather) { w.delay = d }) }

// Trickle limits each connection and direction to that many bytes a second.
func (p *Proxy) Trickle(bytesPerSecond int) {
	p.change(func(w *weather) { w.rate = max(bytesPerSecond, 1) })
}

// Refuse closes the listener: new connections are refused, as by a machine on which
// the server does not run. Existing connections stay; see [Proxy.Cut].
func (p *Proxy) Refuse() {
	p.mu.Lock()
	l := p.listener
	p.listener = nil
	p.mu.Unlock()
	if l != nil {
		l.Close()
		<-l.ended // or a connection could still come out of it
	}
}

// Heal ends all states: held-back bytes arrive, and new connections are accepted on
// the same address as before.
func (p *Proxy) Heal() {
	p.change(func(w *weather) { *w = weather{} })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Errorf("the proxy cannot listen on its address again: %v", err)
		return
	}
	p.listen(l)
}

// Open returns how many connections there are.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Accepted returns how many connections there have been.
func (p *Proxy) Accepted() int64 { return p.accepted.Load() }

// Bytes returns how many bytes were carried to a side.
func (p *Proxy) Bytes(to Side) int64 {
	if to == Client {
		return p.toClient.Load()
	}
	return p.toTarget.Load()
}

// Close cuts everything, and returns when all goroutines of the proxy have ended.
// It is called at the end of the test, and may be called before.
func (p *Proxy) Close() {
	p.Refuse()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Cut()
	p.running.Wait()
}

// listener is one from which connections are accepted.
type listener struct {
	net.Listener
	ended chan struct{} // closed when no more are accepted
}

// listen is called with p.mu held.
func (p *Proxy) listen(from net.Listener) {
	l := &listener{from, make(chan struct{})}
	p.listener = l
	p.running.Go(func() {
		defer close(l.ended)
		p.accept(l)
	})
}

func (p *Proxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.t.Errorf("the proxy cannot accept connections: %v", err)
			return
		}
		p.serve(conn.(*net.TCPConn))
	}
}

func (p *Proxy) serve(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		conn.Close()
		return
	}
	p.accepted.Add(1)
	l := newLink(p, conn)
	p.links[l] = struct{}{}
	target := p.target
	p.running.Go(func() {
		defer p.forget(l)
		l.run(target)
	})
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	close(l.ended)
}

// all is called with p.mu held.
func (p *Proxy) all() []*link {
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}
