package gatewaytest

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
)

// Sockets are sockets over the in-memory network of the tests, so that shards
// too run in fake time. A connection takes a few bytes at a time, which are in flight
// until its client has read them.
type Sockets struct {
	mu     sync.Mutex // guards the following fields
	last   epoll.Handle
	open   map[epoll.Handle]*memorySocket
	before func(call string, p []byte) // called first by each method of a poller; nil: nothing is called
}

// Intercept makes each method of a poller call f first.
func (s *Sockets) Intercept(f func(call string, p []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func (s *Sockets) begin(call string, p []byte) {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(call, p)
	}
}

// NewSockets returns the sockets of a Network.
func NewSockets() *Sockets { return &Sockets{open: map[epoll.Handle]*memorySocket{}} }

// memoryTakes is the most bytes that one write takes: few, so that many writes are
// incomplete.
const memoryTakes = 500

// Take implements epoll.Sockets.
func (s *Sockets) Take(c net.Conn) (epoll.Handle, error) {
	if wrapper, wraps := c.(*netconn.StallTimeoutConn); wraps {
		c = wrapper.NetConn()
	}
	mine, ok := c.(*Conn)
	if !ok {
		return 0, errors.New("not of this network")
	}
	mine.mu.Lock()
	mine.taken = true
	mine.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.open[s.last] = &memorySocket{conn: mine.Conn, writes: make(chan []byte, 1)}
	return s.last, nil
}

// Count returns how many connections are taken.
func (s *Sockets) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *Sockets) get(h epoll.Handle) *memorySocket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[h]
}

// Close implements epoll.Sockets.
func (s *Sockets) Close(h epoll.Handle) {
	one := s.get(h)
	s.mu.Lock()
	delete(s.open, h)
	s.mu.Unlock()
	one.conn.Close()
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.ended {
		one.ended = true
		close(one.writes)
	}
}

// NewPoller implements epoll.Sockets.
func (s *Sockets) NewPoller() (epoll.Poller, error) {
	return &memoryPoller{Sockets: s, waker: make(chan struct{}, 1)}, nil
}

// memorySocket is one connection that was taken. Two goroutines serve it from when it
// is watched until it is closed.
type memorySocket struct {
	conn   net.Conn
	writes chan []byte

	mu    sync.Mutex // guards the following fields
	busy  bool       // bytes are in flight
	await bool
	ended bool // nothing more is written
}

type memoryPoller struct {
	*Sockets
	waker chan struct{}

	mu      sync.Mutex // guards the following field
	notices []epoll.Notice
}

// Ring implements epoll.Poller.
func (p *memoryPoller) Ring() {
	select {
	case p.waker <- struct{}{}:
	default:
	}
}

func (p *memoryPoller) tell(n epoll.Notice) {
	p.mu.Lock()
	p.notices = append(p.notices, n)
	p.mu.Unlock()
	p.Ring()
}

// Wait implements epoll.Poller.
func (p *memoryPoller) Wait(dst []epoll.Notice, timeout time.Duration) ([]epoll.Notice, error) {
	p.begin("wait", nil)
	var after chan struct{}
	if timeout >= 0 {
		// The channel of a timer can crash the race detector in a bubble: https://go.dev/issue/78156.
		after = make(chan struct{})
		defer time.AfterFunc(timeout, func() { close(after) }).Stop()
	}
	select {
	case <-p.waker:
	case <-after:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	dst = append(dst, p.notices...)
	p.notices = nil
	return dst, nil
}

// Watch implements epoll.Poller.
func (p *memoryPoller) Watch(h epoll.Handle, key uint64) error {
	p.begin("watch", nil)
	s := p.get(h)
	go func() {
		var b [64]byte
		for {
			if _, err := s.conn.Read(b[:]); err != nil {
				p.tell(epoll.Notice{Key: key, Gone: true})
				return
			}
		}
	}()
	go func() {
		for b := range s.writes {
			_, _ = s.conn.Write(b) // the reader reports errors
			s.mu.Lock()
			s.busy = false
			awaited := s.await
			s.mu.Unlock()
			if awaited {
				p.tell(epoll.Notice{Key: key, Writable: true})
			}
		}
		s.conn.Close()
	}()
	return nil
}

// Await implements epoll.Poller.
func (p *memoryPoller) Await(h epoll.Handle, key uint64, writable bool) error {
	p.begin("await", nil)
	s := p.get(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await = writable
	if writable && !s.busy {
		p.tell(epoll.Notice{Key: key, Writable: true})
	}
	return nil
}

// Write implements epoll.Poller.
func (p *memoryPoller) Write(h epoll.Handle, b []byte) (int, error) {
	p.begin("write", b)
	s := p.get(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.ended {
		return 0, epoll.ErrBlocked
	}
	n := min(len(b), memoryTakes)
	s.busy = true
	s.writes <- append([]byte(nil), b[:n]...)
	if n < len(b) {
		return n, epoll.ErrBlocked
	}
	return n, nil
}

// WriteAll joins only as many bytes as one write can take: a large value goes
// out in thousands of writes, and the race detector looks at every byte of a
// copy.
func (p *memoryPoller) WriteAll(h epoll.Handle, bs [][]byte, _ bool) (int, error) {
	const most = 8 * memoryTakes
	var all []byte
	for _, b := range bs {
		all = append(all, b[:min(len(b), most-len(all))]...)
	}
	return p.Write(h, all)
}

// Send implements epoll.Poller.
func (p *memoryPoller) Send(h epoll.Handle, f *epoll.File, from int) (int, error) {
	b := make([]byte, min(f.Size()-from, memoryTakes+1)) // more than it takes, if there is more
	if _, err := f.ReadAt(b, int64(from)); err != nil {
		return 0, err
	}
	return p.Write(h, b)
}

// Finish implements epoll.Poller.
func (p *memoryPoller) Finish(h epoll.Handle, _ uint64) error {
	p.begin("finish", nil)
	s := p.get(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	close(s.writes)
	return nil
}

// Discard implements epoll.Poller.
func (p *memoryPoller) Discard(epoll.Handle) bool { return true }

// Shut implements epoll.Poller.
func (p *memoryPoller) Shut() {}
