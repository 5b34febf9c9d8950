package shard

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/h2"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// Pump is the shard pump as a whole. A nil *Pump means that there is none.
//
// All methods may be called from any goroutine.
type Pump struct {
	// Static after construction.
	sockets   multiplexed
	all       []*shard
	stretches *stretches

	next    atomic.Uint64
	aborted atomic.Bool
	rush    rush
}

// New returns a pump of n shards. afterRush, which may be nil, is called once a rush of
// arrivals has ended.
func New(d *session.Deps, s epoll.Sockets, n int, afterRush func()) *Pump {
	all := newMultiplexed(s)
	out := &Pump{sockets: all, rush: rush{over: afterRush}, stretches: newStretches(stretchesBudget, netconn.MemoryFiles())}
	for range n {
		out.all = append(out.all, newShard(d, all, out.stretches))
	}
	return out
}

// Carry takes a stream, with its connection, from net/http. If it returns false,
// nothing has happened, and the goroutine pump can carry the stream.
func (p *Pump) Carry(w http.ResponseWriter, r *http.Request, c session.Session) bool {
	if p == nil || p.aborted.Load() {
		return false
	}
	if r.ProtoMajor == 2 {
		return p.carryStream(w, c)
	}
	conn, whole := netconn.WholeConn(r)
	if !whole {
		return false
	}
	h, err := p.sockets.Take(conn)
	if err != nil {
		return false
	}
	arrived := false
	defer func() {
		if !arrived {
			p.sockets.Close(h)
		}
	}()
	// Anything that the client sent after its request is not answered: the response
	// announces that it is the last one.
	if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
		return false
	}
	closeOriginal(conn)
	arrived = p.admit(h, netconn.ResponseHead(w.Header()), c)
	return true
}

// carryStream takes a stream of HTTP/2 from its handler.
func (p *Pump) carryStream(w http.ResponseWriter, c session.Session) bool {
	st := h2.Detach(w)
	if st == nil {
		return false
	}
	h := p.sockets.streams.add(st)
	if !p.admit(h, nil, c) {
		p.sockets.Close(h)
	}
	return true
}

// admit gives a stream that is taken to one of the shards. If it returns false, the stream has ended, and the caller
// still owns the handle.
func (p *Pump) admit(h epoll.Handle, head []byte, c session.Session) bool {
	err := p.arrive(h, head, c)
	if err != nil {
		c.Deps.Log.Error("the shard pump cannot run", "error", err)
		c.Deps.Leave(c.AdmissionRef, c.Authorization)
	}
	return err == nil
}

// closeOriginal closes a connection of which the poller has a duplicate, without a word of TLS.
func closeOriginal(conn net.Conn) {
	if c := netconn.Of(conn); c != nil {
		conn = c
	}
	conn.Close()
}

// arrive gives the stream to one of the shards. If it fails, the caller still owns
// the handle and the reference.
func (p *Pump) arrive(h epoll.Handle, head []byte, c session.Session) (err error) {
	one := p.all[p.next.Add(1)%uint64(len(p.all))]
	l := newUnsharedStream(one, c, h)
	if len(head) > 0 {
		l.out.raw(head)
	}
	p.rush.arrive()
	c.Deps.Metrics.StreamOpened(c.Transport())
	arrived := false
	defer func() {
		if !arrived {
			c.Deps.Subscribers.RecordEnd(l.Identity, l.Describe(l.Delivered), introspection.LeftByAccident)
			l.Close(0, false)
		}
	}()
	l.Hello(&l.text)
	l.out.seal()
	err = one.arrive(l)
	arrived = err == nil
	return err
}

// Carriers returns all shards, for the list of subscribers.
func (p *Pump) Carriers() []introspection.Carrier {
	if p == nil {
		return nil
	}
	out := make([]introspection.Carrier, len(p.all))
	for i := range p.all {
		out[i] = p.all[i]
	}
	return out
}

// Stretches returns how many stretches were made and how often one was sent, and how much memory the files
// take that are open.
func (p *Pump) Stretches() (made, sent uint64, bytes int64) {
	if p == nil {
		return 0, 0, 0
	}
	return p.stretches.made.Load(), p.stretches.sent.Load(), p.stretches.room.now().bytes
}

// Ring makes all shards look for news.
func (p *Pump) Ring() {
	if p == nil {
		return
	}
	for _, one := range p.all {
		one.ring()
	}
}

// Abort closes all streams abruptly. No more are carried.
func (p *Pump) Abort() {
	if p == nil {
		return
	}
	p.aborted.Store(true)
	for _, one := range p.all {
		one.abort()
	}
}
