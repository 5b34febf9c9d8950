package shard

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/h2"
)

// multiplexed are sockets, and streams of HTTP/2 beside them: a shard has a handle of each, and need not know which
// it is.
//
// All methods may be called from any goroutine.
type multiplexed struct {
	epoll.Sockets
	streams *streamTable
}

func newMultiplexed(s epoll.Sockets) multiplexed { return multiplexed{s, newStreamTable()} }

// streamBit marks the handle of a stream of HTTP/2. The other bits are its index.
const streamBit epoll.Handle = 1 << 29

// isStream reports whether a handle is that of a stream of HTTP/2.
func isStream(h epoll.Handle) bool { return h&streamBit != 0 }

// NewPoller implements epoll.Sockets.
func (m multiplexed) NewPoller() (epoll.Poller, error) {
	p, err := m.Sockets.NewPoller()
	if err != nil {
		return nil, err
	}
	return &multiplexedPoller{Poller: p, streams: m.streams}, nil
}

// Close implements epoll.Sockets.
func (m multiplexed) Close(h epoll.Handle) {
	if !isStream(h) {
		m.Sockets.Close(h)
		return
	}
	m.streams.remove(h).Close()
}

// queues reports whether a blocked stream waits for others of its connection, and not for its client.
func (m multiplexed) queues(h epoll.Handle) bool {
	return isStream(h) && m.streams.get(h).Queues()
}

// multiplexedPoller is a poller of both.
type multiplexedPoller struct {
	epoll.Poller
	streams *streamTable // static after construction
	piece   []byte       // of a file; owned by the shard

	mu      sync.Mutex // guards the following field
	notices []epoll.Notice
}

// Watch implements epoll.Poller.
func (p *multiplexedPoller) Watch(h epoll.Handle, key uint64) error {
	if !isStream(h) {
		return p.Poller.Watch(h, key)
	}
	p.streams.get(h).Own(func(n h2.News) {
		p.tell(epoll.Notice{Key: key, Gone: n == h2.Gone, Writable: n == h2.Writable})
	})
	return nil
}

func (p *multiplexedPoller) tell(n epoll.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.notices = append(p.notices, n); len(p.notices) == 1 {
		p.Ring()
	}
}

// Wait implements epoll.Poller.
func (p *multiplexedPoller) Wait(dst []epoll.Notice, timeout time.Duration) ([]epoll.Notice, error) {
	had := len(dst)
	if dst = p.told(dst); len(dst) > had {
		timeout = 0
	}
	dst, err := p.Poller.Wait(dst, timeout)
	return p.told(dst), err
}

// told appends what streams have told.
func (p *multiplexedPoller) told(dst []epoll.Notice) []epoll.Notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	dst = append(dst, p.notices...)
	p.notices = p.notices[:0]
	return dst
}

// Await implements epoll.Poller.
func (p *multiplexedPoller) Await(h epoll.Handle, key uint64, writable bool) error {
	if !isStream(h) {
		return p.Poller.Await(h, key, writable)
	}
	p.streams.get(h).Await(writable)
	return nil
}

// Write implements epoll.Poller.
func (p *multiplexedPoller) Write(h epoll.Handle, b []byte) (int, error) {
	if !isStream(h) {
		return p.Poller.Write(h, b)
	}
	n, err := p.streams.get(h).Write(b)
	return n, blockedError(err)
}

// WriteAll implements epoll.Poller.
func (p *multiplexedPoller) WriteAll(h epoll.Handle, all [][]byte, more bool) (total int, err error) {
	if !isStream(h) {
		return p.Poller.WriteAll(h, all, more)
	}
	total, err = p.streams.get(h).WriteAll(all)
	return total, blockedError(err)
}

// pieceBytes is how much of a file is read at once.
const pieceBytes = 16 << 10

// Send implements epoll.Poller.
func (p *multiplexedPoller) Send(h epoll.Handle, f *epoll.File, from int) (total int, err error) {
	if !isStream(h) {
		return p.Poller.Send(h, f, from)
	}
	st := p.streams.get(h)
	if p.piece == nil {
		p.piece = make([]byte, pieceBytes)
	}
	for from+total < f.Size() {
		size := st.Room(min(pieceBytes, f.Size()-from-total))
		if size, err = f.ReadAt(p.piece[:size], int64(from+total)); err != nil {
			return total, err
		}
		n, err := st.WriteSome(p.piece[:size], f.Size()-from-total)
		if total += n; err != nil {
			return total, blockedError(err)
		}
	}
	return total, nil
}

// Finish implements epoll.Poller.
func (p *multiplexedPoller) Finish(h epoll.Handle, key uint64) error {
	if !isStream(h) {
		return p.Poller.Finish(h, key)
	}
	return p.streams.get(h).Finish()
}

// Discard implements epoll.Poller.
func (p *multiplexedPoller) Discard(h epoll.Handle) bool {
	return isStream(h) || p.Poller.Discard(h)
}

// blockedError is the error of a poller for that of a stream.
func blockedError(err error) error {
	if errors.Is(err, h2.ErrBlocked) {
		return epoll.ErrBlocked
	}
	return err
}

// streamTable has the streams of HTTP/2, by handle. Any goroutine may use it.
type streamTable struct {
	mu   sync.Mutex // guards the following field, and is held while a handle is given or taken back
	free []epoll.Handle
	all  atomic.Pointer[[]atomic.Pointer[h2.Stream]]
}

func newStreamTable() *streamTable {
	t := &streamTable{}
	t.all.Store(&[]atomic.Pointer[h2.Stream]{})
	return t
}

// add returns a handle of a stream.
func (t *streamTable) add(st *h2.Stream) epoll.Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		t.grow()
	}
	h := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	(*t.all.Load())[h&^streamBit].Store(st)
	return h
}

// grow makes room for twice as many. t.mu is held.
func (t *streamTable) grow() {
	before := *t.all.Load()
	grown := make([]atomic.Pointer[h2.Stream], max(2*len(before), 64))
	for i := range before {
		grown[i].Store(before[i].Load())
	}
	t.all.Store(&grown)
	for i := len(grown) - 1; i >= len(before); i-- {
		t.free = append(t.free, epoll.Handle(i)|streamBit)
	}
}

func (t *streamTable) get(h epoll.Handle) *h2.Stream {
	return (*t.all.Load())[h&^streamBit].Load()
}

// remove takes a handle back.
func (t *streamTable) remove(h epoll.Handle) *h2.Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := (*t.all.Load())[h&^streamBit].Swap(nil)
	t.free = append(t.free, h)
	return st
}
