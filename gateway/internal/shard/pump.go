package shard

import (
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
	sockets epoll.Sockets
	all     []*shard

	next    atomic.Uint64
	aborted atomic.Bool
	rush    rush
}

// New returns a pump of n shards. afterRush, which may be nil, is called once a rush of
// arrivals has ended.
func New(d *session.Deps, s epoll.Sockets, n int, afterRush func()) *Pump {
	out := &Pump{sockets: s, rush: rush{over: afterRush}}
	for range n {
		out.all = append(out.all, newShard(d, s))
	}
	return out
}

// Carry takes a stream, with its connection, from net/http. If it returns false,
// nothing has happened, and the goroutine pump can carry the stream.
func (s *Pump) Carry(w http.ResponseWriter, r *http.Request, c session.Session) bool {
	conn, whole := netconn.WholeConn(r)
	if s == nil || !whole || r.TLS != nil || s.aborted.Load() {
		return false
	}
	h, err := s.sockets.Take(conn)
	if err != nil {
		return false
	}
	arrived := false
	defer func() {
		if !arrived {
			s.sockets.Close(h)
		}
	}()
	// Anything that the client sent after its request is not answered: the response
	// announces that it is the last one.
	if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
		return false
	}
	conn.Close()
	if err := s.arrive(h, netconn.ResponseHead(w.Header()), c); err != nil {
		c.Deps.Log.Error("the shard pump cannot run", "error", err)
		c.Deps.Leave(c.AdmissionRef, c.Pass)
		return true
	}
	arrived = true
	return true
}

// arrive gives the stream to one of the shards. If it fails, the caller still owns
// the handle and the reference.
func (s *Pump) arrive(h epoll.Handle, head []byte, c session.Session) (err error) {
	one := s.all[s.next.Add(1)%uint64(len(s.all))]
	l := newUnsharedStream(one, c, h)
	l.out.raw(head)
	s.rush.arrive()
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
func (s *Pump) Carriers() []introspection.Carrier {
	if s == nil {
		return nil
	}
	out := make([]introspection.Carrier, len(s.all))
	for i := range s.all {
		out[i] = s.all[i]
	}
	return out
}

// Ring makes all shards look for news.
func (s *Pump) Ring() {
	if s == nil {
		return
	}
	for _, one := range s.all {
		one.ring()
	}
}

// Abort closes all streams abruptly. No more are carried.
func (s *Pump) Abort() {
	if s == nil {
		return
	}
	s.aborted.Store(true)
	for _, one := range s.all {
		one.abort()
	}
}
