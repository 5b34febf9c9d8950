package shard

import (
	"errors"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream/watch"
)

// shard is the shard pump: one goroutine that carries the streams of very many
// connections of HTTP/1.1, and streams of HTTP/2. A stream that needs bytes of its own (a
// snapshot, a client that does not keep up) is an unshared stream. A stream that is
// up to date is a member of a group: streams of the same watches at the same
// position, which get the same bytes, rendered once.
//
// The goroutine runs while there is a stream.
type shard struct {
	// Static after construction.
	deps      *session.Deps // what all streams have in common; each has its own settings
	sockets   multiplexed
	stretches *stretches // of all shards

	inbox // from other goroutines

	// Owned by the goroutine.
	arriving []*unsharedStream // taken from arrived, but not welcomed yet
	queries  []func()          // taken from asked, but not answered yet
	carried
}

// carried is the state of the streams that a shard carries. It is empty each time
// the goroutine starts, and after a failure.
//
// Owned by the goroutine of its shard.
type carried struct {
	p              epoll.Poller // poll
	table          table
	unshared       map[int32]*unsharedStream // by slot
	most           int                       // the most unshared streams there were at once
	ready          []*unsharedStream         // unshared streams that may have something to write, in this order
	named          map[string]*group
	groups         []*group // by index; nil: free
	free           []int32  // indexes of groups
	due            []*group // groups that may have something to write
	before         []*group // reused for due
	quiet          quietGroups
	wakers         map[*watch.Watch]*watchWaker
	authorizations map[int32]*authz.Authorization // by slot, of the streams that have one
	wheel          *wheel
	scratch        *session.Scratch // of all streams and groups
	room           *room
	drains         bool // the times at which members must end are drawn
	notices        []epoll.Notice
	keys           []uint64
	slots          []int32
}

func newCarried(p epoll.Poller) carried {
	return carried{
		p: p, unshared: map[int32]*unsharedStream{}, named: map[string]*group{}, wakers: map[*watch.Watch]*watchWaker{},
		authorizations: map[int32]*authz.Authorization{}, wheel: newWheel(time.Now()), scratch: &session.Scratch{}, room: &room{},
	}
}

// errAborted means that the gateway closes all streams.
var errAborted = errors.New("the gateway closes all streams")

const (
	// turnBytes is how much is written to one stream before others have their turn.
	turnBytes = 256 << 10
	// passMembers is how many members of a group are written to before others have
	// their turn.
	passMembers = 512
	// unsharedTurn is how long unshared streams are served before groups have their turn.
	unsharedTurn = 5 * time.Millisecond
	// sampled is the number of writes for which one measurement of latency stands.
	sampled = 64
)

func newShard(d *session.Deps, s multiplexed, all *stretches) *shard {
	return &shard{deps: d, sockets: s, stretches: all, carried: newCarried(nil)}
}

// run carries streams until there are none. After a failure it starts again.
func (s *shard) run(p epoll.Poller) {
	s.carried = newCarried(p)
	for !s.carry() {
	}
}

// carry carries streams until there are none. If it panics, which is a bug in this
// program, it ends the streams there are and returns false.
func (s *shard) carry() (done bool) {
	defer func() {
		if v := recover(); v != nil {
			s.fail(problem.Panicked(v))
		}
	}()
	for busy := false; ; {
		busy = s.admit() || busy
		if s.table.count == 0 && s.retire() {
			return true
		}
		if err := s.listen(busy); err != nil {
			s.deps.Log.Error("the shard pump lost its connections", "error", err)
			s.closeAll()
			continue
		}
		busy = s.serve(time.Now())
	}
}

func (s *shard) welcome(l *unsharedStream) {
	l.Scratch = s.scratch
	l.slot = s.table.add(l.handle, l.AdmissionRef)
	s.table.slots[l.slot].stamp = l.Identity.Stamp
	s.table.visitors.at(l.slot).origin = l.Identity.Origin
	s.addUnshared(l)
	s.enqueue(l)
	s.carryAuthorization(l)
	for i := range l.Follows {
		s.follow(l.Follows[i].Watch)
	}
	if err := s.p.Watch(l.handle, s.table.key(l.slot)); err != nil {
		s.deps.Log.Error("a connection cannot be watched", "error", err)
		s.drop(l, introspection.LeftByAccident)
	}
}

func (s *shard) follow(w *watch.Watch) {
	if s.wakers[w] == nil {
		s.wakers[w] = startWatchWaker(w, s)
	}
	s.wakers[w].streams++
}

func (s *shard) unfollow(w *watch.Watch) {
	b := s.wakers[w]
	if b.streams--; b.streams == 0 {
		b.stop()
		delete(s.wakers, w)
	}
}

// listen waits for something to do, unless busy, and handles the events of
// connections.
func (s *shard) listen(busy bool) error {
	timeout := time.Duration(0)
	if !busy {
		timeout = s.patience()
	}
	var err error
	s.notices, err = s.p.Wait(s.notices[:0], timeout)
	for _, n := range s.notices {
		if at, there := s.table.find(n.Key); there {
			s.notice(at, n)
		}
	}
	return err
}

func (s *shard) notice(at int32, n epoll.Notice) {
	l := s.unshared[at]
	gone := n.Readable && !s.p.Discard(s.table.slots[at].handle) || n.Gone
	switch {
	case l == nil && gone:
		s.dropMember(at, introspection.LeftByItself)
		return
	case l == nil: // if it can take bytes, so can every member
	case gone:
		s.drop(l, introspection.LeftByItself)
		return
	case n.Writable:
		l.blocked = time.Time{}
		s.enqueue(l)
	}
	if c := &s.table.slots[at]; n.Ended && !c.ended {
		c.ended = true
		s.probe(at)
	}
}

// probe sends something to a client that has ended its side: if it has in fact
// disconnected, that resets the connection.
func (s *shard) probe(at int32) {
	l := s.unshared[at]
	if l == nil {
		l = s.detachMember(at)
	}
	l.ForceHeartbeat()
	s.enqueue(l)
}

// serve gives every stream a turn, and reports whether more must be written now.
func (s *shard) serve(now time.Time) (busy bool) {
	if !s.drains && s.deps.Admission.IsDraining() {
		s.drain(now)
	}
	s.wakeGroups()
	busy = s.serveGroups(now)
	s.keys = s.wheel.due(s.keys[:0], now)
	for _, key := range s.keys {
		if at, there := s.table.find(key); there && s.table.slots[at].looked <= introspection.Nanos(now) {
			s.table.slots[at].looked = 0
			s.look(at, now)
		}
	}
	return s.serveUnshared(now) || busy
}

// forget closes a connection, and frees its slot and its references.
func (s *shard) forget(l *unsharedStream) {
	s.sockets.Close(l.handle)
	s.deps.Leave(s.table.remove(l.slot), s.authorizations[l.slot])
	delete(s.authorizations, l.slot)
	for i := range l.Follows {
		s.unfollow(l.Follows[i].Watch)
	}
}

func (s *shard) closeAll() {
	for at := range s.table.slots {
		switch {
		case s.table.slots[at].kind == memberSlot:
			s.dropMember(int32(at), introspection.LeftByAccident)
		case s.unshared[int32(at)] != nil:
			s.drop(s.unshared[int32(at)], introspection.LeftByAccident)
		}
	}
}
