package shard

import (
	"errors"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream"
)

// wakeGroups gives a turn to the groups whose watches may have news.
func (s *shard) wakeGroups() {
	s.mu.Lock()
	woken := s.wokenBy
	s.wokenBy = nil
	s.mu.Unlock()
	for _, b := range woken {
		b.rung.Store(false)
		b.groups.each(s.enqueueGroup)
	}
}

// enqueueGroup queues a group for a turn.
func (s *shard) enqueueGroup(g *group) {
	if !g.queued && s.has(g) {
		g.queued = true
		s.due = append(s.due, g)
	}
}

// has reports whether a group still has members.
func (s *shard) has(g *group) bool {
	return int(g.index) < len(s.groups) && s.groups[g.index] == g
}

// serveGroups serves the groups that may have news, and reports whether one of them
// has more to write now.
func (s *shard) serveGroups(now time.Time) (busy bool) {
	s.quiet.due(now, s.enqueueGroup)
	due := s.due
	s.due = s.before[:0]
	for _, g := range due {
		g.queued = false
		if s.has(g) && s.serveGroup(g, now) {
			s.enqueueGroup(g)
		}
		if s.has(g) {
			s.quiet.put(g)
		}
	}
	clear(due)
	s.before = due[:0]
	return len(s.due) > 0 || s.quiet.round
}

// serveGroup renders the news for a group, and writes it to some of the
// members.
func (s *shard) serveGroup(g *group, now time.Time) (busy bool) {
	removed := g.Removed()
	switch {
	case removed != "":
		s.each(g, func(at int32) { s.farewellFor(at, removed) })
		return true
	case g.splits || !g.near():
		return s.splitForSnapshot(g, now)
	}
	all := g.advance(now)
	s.pass(g)
	return !all || g.behind > 0
}

// each calls f for the current members; f may remove them.
func (s *shard) each(g *group, f func(at int32)) {
	s.slots = append(s.slots[:0], g.members...)
	for _, at := range s.slots {
		f(at)
	}
}

// pass writes to members that are behind.
func (s *shard) pass(g *group) {
	for n := 0; n < passMembers && g.behind > 0; n++ {
		g.at++
		if g.at >= len(g.members) {
			g.at = 0
		}
		at := g.members[g.at]
		c := &s.table.slots[at]
		if c.sent == g.end() {
			continue
		}
		oldest := g.oldest // cleared once it is written to all
		s.writeMember(g, at, c)
		if n%sampled == 0 && oldest.At != 0 {
			g.Written(time.Now(), oldest)
		}
	}
}

func (s *shard) writeMember(g *group, at int32, c *slot) {
	n, err := s.p.Write(c.handle, g.buffer[c.sent-g.base:])
	c.sent += uint64(n)
	switch {
	case err == nil:
		if g.behind--; g.behind == 0 {
			g.written()
		}
	case errors.Is(err, epoll.ErrBlocked):
		s.block(s.detachMember(at))
	default:
		s.dropMember(at, introspection.LeftByItself)
	}
}

func (s *shard) join(l *unsharedStream) bool {
	g := s.named[l.key]
	if g == nil {
		g = s.found(l)
	}
	if !g.beside(l) {
		return false // one of them is about to be woken
	}
	if l.awaits && s.p.Await(l.handle, s.table.key(l.slot), false) != nil {
		return false
	}
	c := &s.table.slots[l.slot]
	c.retryMS = int32(l.Retry.Milliseconds())
	c.leaves = introspection.Nanos(l.TooOld)
	s.table.visitors.at(l.slot).differs = l.Delivered.Minus(g.Delivered)
	if l.text.Zipper != nil {
		c.gap = l.text.Zipper.Sum.Less(g.sum)
	}
	g.enroll(&s.table, l.slot)
	l.Release()
	s.removeUnshared(l)
	s.schedule(l.slot, s.memberDue(l.slot))
	return true
}

// found makes a group at the position of l.
func (s *shard) found(l *unsharedStream) *group {
	if len(s.free) == 0 {
		s.free, s.groups = append(s.free, int32(len(s.groups))), append(s.groups, nil)
	}
	g := newGroup(l)
	g.index = s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.groups[g.index], s.named[g.key] = g, g
	for i := range g.Follows {
		s.wakers[g.Follows[i].Watch].groups.add(g)
	}
	s.quiet.put(g)
	return g
}

// disband forgets a group that has no members.
func (s *shard) disband(g *group) {
	g.Release()
	s.groups[g.index], s.free = nil, append(s.free, g.index)
	if s.named[g.key] == g {
		delete(s.named, g.key)
	}
	for i := range g.Follows {
		s.wakers[g.Follows[i].Watch].groups.remove(g)
	}
	s.quiet.remove(g)
}

// detachMember turns a member into an unshared stream, with the bytes not yet written
// to it.
func (s *shard) detachMember(at int32) *unsharedStream {
	c := &s.table.slots[at]
	g := s.groups[c.group]
	l := &unsharedStream{Session: g.forkMember(), key: g.key, handle: c.handle, slot: at, shard: s}
	s.addUnshared(l)
	l.Lease.CallWhenGranted(l.called)
	l.text = session.NewText(&l.Session, &l.out, g.sum.Plus(c.gap))
	l.Retry = time.Duration(c.retryMS) * time.Millisecond
	l.Identity, l.Delivered = s.table.identity(at), s.table.visitors.at(at).differs.Plus(g.Delivered)
	l.Began = introspection.FromNanos(l.Identity.Stamp)
	l.Pass = s.passes[at]
	if l.Drains = c.drains; l.Drains {
		l.LeaveAt = c.due()
	} else {
		l.TooOld = c.due()
	}
	if rest := g.rest(c); len(rest) > 0 {
		l.out.raw(rest)
	}
	s.dismiss(g, at)
	s.enqueue(l)
	return l
}

func (s *shard) dismiss(g *group, at int32) {
	g.dismiss(&s.table, at)
	if len(g.members) == 0 {
		s.disband(g)
	}
}

// dropMember ends a member whose connection has ended.
func (s *shard) dropMember(at int32, why introspection.DepartureReason) {
	c := &s.table.slots[at]
	g := s.groups[c.group]
	l := &unsharedStream{Session: g.Session, handle: c.handle, slot: at}
	s.deps.Subscribers.RecordEnd(s.table.identity(at), s.describeMember(at), why)
	s.dismiss(g, at)
	s.forget(l)
	s.deps.Metrics.StreamClosed(g.Transport())
}

// farewell sends a goodbye to a member whose time has come.
func (s *shard) farewell(at int32, now time.Time) {
	reason := s.passes[at].ReasonToEnd(now)
	switch {
	case reason != "":
	case s.table.slots[at].drains:
		reason = stream.GoodbyeDraining
	default:
		reason = stream.GoodbyeMaxAge
	}
	s.farewellFor(at, reason)
}

func (s *shard) farewellFor(at int32, reason stream.GoodbyeReason) {
	s.detachMember(at).sayGoodbye(reason)
}
