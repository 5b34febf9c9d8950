package shard

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// Pump is the shard pump as a whole. A nil *Pump means that there is none.
//
// All methods may be called from any goroutine.
type Pump struct {
	// Static after construction.
	sockets   epoll.Sockets
	all       []*shard
	stretches *stretches

	next    atomic.Uint64
	aborted atomic.Bool
	rush    rush
}

// New returns a pump of n shards. afterRush, which may be nil, is called once a rush of
// arrivals has ended.
func New(d *session.Deps, s epoll.Sockets, n int, afterRush func()) *Pump {
	out := &Pump{sockets: s, rush: rush{over: afterRush}, stretches: newStretches(stretchesBudget)}
	for range n {
		out.all = append(out.all, newShard(d, s, out.stretches))
	}
	return out
}

// Carry takes a stream, with its connection, from net/http. If it returns false,
// nothing has happened, and the goroutine pump can carry the stream.
func (p *Pump) Carry(w http.ResponseWriter, r *http.Request, c session.Session) bool {
	conn, whole := netconn.WholeConn(r)
	if p == nil || !whole || p.aborted.Load() {
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
	if err := p.arrive(h, netconn.ResponseHead(w.Header()), c); err != nil {
		c.Deps.Log.Error("the shard pump cannot run", "error", err)
		c.Deps.Leave(c.AdmissionRef, c.Authorization)
		return true
	}
	arrived = true
	return true
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
	l.out.raw(head)
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

// Stretches returns how many stretches were made and how often one was sent, and how many bytes the files
// of those have that there are.
func (p *Pump) Stretches() (made, sent uint64, bytes int64) {
	if p == nil {
		return 0, 0, 0
	}
	return p.stretches.files.Load(), p.stretches.sent.Load(), p.stretches.bytes.Load()
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
