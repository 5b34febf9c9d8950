package shard

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// watchWaker notifies a shard of news on a watch. For a watch of its own it has a
// goroutine; a view notifies it directly, since there may be very many.
type watchWaker struct {
	shard *shard      // static after construction
	stop  func()      // static after construction
	rung  atomic.Bool // it is among the wakers that have rung

	// Owned by the shard.
	streams int // number of streams that follow the watch
	groups  groupSet
}

// groupSet is a set of groups. There are very many sets, and most have one group.
//
// Owned by one shard.
type groupSet struct {
	one  *group
	more map[*group]struct{} // the others; nil: there were none
}

// add adds a group that is not there.
func (s *groupSet) add(g *group) {
	if s.one == nil {
		s.one = g
		return
	}
	if s.more == nil {
		s.more = map[*group]struct{}{}
	}
	s.more[g] = struct{}{}
}

func (s *groupSet) remove(g *group) {
	if s.one == g {
		s.one = nil
	}
	delete(s.more, g)
}

// each calls f for all groups.
func (s *groupSet) each(f func(*group)) {
	if s.one != nil {
		f(s.one)
	}
	for g := range s.more {
		f(g)
	}
}

func startWatchWaker(w *watch.Watch, s *shard) *watchWaker {
	b := &watchWaker{shard: s}
	notified, is := w.Notify(func() { b.news(w) })
	if is {
		b.stop = notified
		b.news(w)
		return b
	}
	stop := make(chan struct{})
	b.stop = func() { close(stop) }
	go b.run(w, stop)
	return b
}

// run rings for news, until stop is closed.
func (b *watchWaker) run(w *watch.Watch, stop <-chan struct{}) {
	for {
		changed := w.Changed() // before the shard looks, so that it misses nothing
		b.news(w)
		select {
		case <-changed:
		case <-w.Done():
			b.news(w)
			return
		case <-stop:
			return
		}
	}
}

// news makes the shard look at the watch.
func (b *watchWaker) news(w *watch.Watch) {
	if !b.rung.Swap(true) {
		b.shard.mu.Lock()
		b.shard.wokenBy = append(b.shard.wokenBy, b)
		b.shard.mu.Unlock()
	}
	if w.Ended() {
		b.shard.alarm()
		return
	}
	b.shard.ring()
}

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
	l.out.bare = g.bare
	s.addUnshared(l)
	l.Lease.CallWhenGranted(l.called)
	l.text = session.NewText(&l.Session, &l.out, g.sum.Plus(c.gap))
	l.Retry = time.Duration(c.retryMS) * time.Millisecond
	l.Identity, l.Delivered = s.table.identity(at), s.table.visitors.at(at).differs.Plus(g.Delivered)
	l.Began = introspection.FromNanos(l.Identity.Stamp)
	l.Authorization = s.authorizations[at]
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
	reason := s.authorizations[at].ReasonToEnd(now)
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

// group is many streams of the same watches, in the same format, that are all up to
// date: they get the same bytes, rendered once.
//
// Owned by one shard.
type group struct {
	session.Session // for all members; its subscriptions are the cursors of cohorts

	key     string
	members []int32 // slots
	index   int32
	bare    bool // chunks have neither heads nor ends
	text    session.Text
	encoder session.Encoder // the text

	splits bool // its members continue on their own, one after the other
	queued bool // for a turn
	beats  bool // it was found in a round of heartbeats, perhaps early
	lent   bool // former members read buffer too, so it must not be reused

	room   *room    // shared by the groups of the shard
	said   int      // bytes of all chunks so far, without their heads
	sum    wire.Sum // of all payloads, if they are compressed; each member keeps its own difference
	buffer []byte   // complete chunks that are not yet written to all members; nil: none
	base   uint64   // bytes before buffer
	behind int      // members to which not everything is written yet
	at     int      // the member that was last written to

	oldest introspection.Moment // commit in buffer
	looked int64                // when the shard looks at it even without news, see introspection.Nanos; 0: it does not
}

// room has the buffers in which the groups of a shard render. A group takes a buffer until
// everything is written, and has none while there is no news.
//
// Owned by one shard.
type room struct {
	payload []byte // of the chunk that is being written, uncompressed
	spare   []byte // an empty buffer; nil: a group has it
}

const (
	// groupFull is the most that is rendered before everything is written to
	// all members: no more than a connection takes at once, see unsentBytes.
	groupFull = 64 << 10
	// keepBuffer is the largest size of a buffer that is reused.
	keepBuffer = 64 << 10
	// lentFrom is how much of the buffer a former member must need to share it
	// instead of copying it: a small rest must not keep a large buffer alive.
	lentFrom = 8 << 10
)

// newGroup returns a group without members at the position of l.
func newGroup(l *unsharedStream) *group {
	g := &group{key: l.key, bare: l.out.bare, room: l.shard.room}
	g.Session = l.Fork(func(i int) *log.Subscription { return log.NewCohort(l.Follows[i].Sub).Cursor() })
	g.text = session.UncompressedText(&g.Session, g)
	g.encoder = &g.text
	g.Turns = false // it is as far as its watches, and never has much to look at
	return g
}

// cohort is the members as readers of one of their watches.
func (g *group) cohort(i int) log.Cohort { return log.CohortOf(g.Follows[i].Sub) }

// forkMember returns the session of a member that continues on its own.
func (g *group) forkMember() session.Session {
	c := g.Fork(func(i int) *log.Subscription { return g.cohort(i).Fork() })
	c.Own = &session.Own{}
	return c
}

// Write implements wire.Outlet.
func (g *group) Write(p []byte) { g.room.payload = append(g.room.payload, p...) }

// seal makes a chunk of the open payload.
func (g *group) seal() bool {
	payload := g.room.payload
	if len(payload) == 0 {
		return false
	}
	sent := payload
	if g.Coding != wire.Identity {
		sent = g.compress(payload)
	}
	if g.buffer == nil {
		g.buffer, g.room.spare = g.room.spare, nil
	}
	if g.bare {
		g.buffer = append(g.buffer, sent...)
	} else {
		g.buffer = wire.AppendChunkHead(g.buffer, len(sent))
		g.buffer = append(append(g.buffer, sent...), wire.ChunkEnd...)
	}
	g.said += len(sent)
	g.room.payload = payload[:0]
	if cap(payload) > keepBuffer {
		g.room.payload = nil
	}
	g.behind = len(g.members)
	return true
}

// compress returns the payload as a piece of every member's body.
func (g *group) compress(payload []byte) []byte {
	p := g.Coding.Compress([][]byte{payload})
	g.sum = g.sum.Then(p.Sum)
	g.Deps.Metrics.Compressed(len(payload)*len(g.members), len(p.Bytes)*len(g.members))
	return p.Bytes
}

func (g *group) end() uint64 { return g.base + uint64(len(g.buffer)) }

// near reports whether the news is small enough to be rendered for all at once.
func (g *group) near() bool {
	for i := range g.Follows {
		if !g.cohort(i).NearHead() || limits.IsMuch(g.Follows[i].Sub) {
			return false
		}
	}
	return true
}

// advance renders the news, in one write if it piled up. It returns false if it did
// not render all of it, since the members are too far behind, or since changes keep coming.
// The news must be near.
func (g *group) advance(now time.Time) (all bool) {
	if len(g.buffer) >= groupFull {
		return false
	}
	if g.behind == 0 {
		g.MarkFlushed()
	}
	full := false
	for !full && g.Turn(g.encoder) && g.near() {
		full = len(g.room.payload) >= groupFull
	}
	g.publish(now)
	return !full
}

// publish does for all members what a flush does for one stream.
func (g *group) publish(now time.Time) {
	due := now
	if g.beats {
		due, g.beats = now.Add(g.early()), false
	}
	g.Bookmarks(due, g.encoder)
	if len(g.room.payload) == 0 && !due.Before(g.HeartbeatAt()) {
		g.text.WriteHeartbeat()
	}
	if !g.seal() {
		return
	}
	g.oldest = g.oldest.Earlier(g.Committed)
	g.Committed = introspection.Moment{} // it is measured when it is written
	g.Flushed(now, g.said, nil)
}

// lookAt returns when the group must be looked at even without news.
func (g *group) lookAt() time.Time {
	at := g.HeartbeatAt()
	if g.Interval == 0 {
		return at
	}
	for i := range g.Follows {
		at = session.Earlier(at, g.Follows[i].Sub.Deadline())
	}
	return at
}

// early is how long before it is due a heartbeat may be sent, together with those of other
// groups.
func (g *group) early() time.Duration { return g.Deps.Heartbeat / 10 }

// written is called once no member is behind.
func (g *group) written() {
	g.base += uint64(len(g.buffer))
	if !g.lent && cap(g.buffer) <= keepBuffer && cap(g.buffer) > cap(g.room.spare) {
		g.room.spare = g.buffer[:0]
	}
	g.buffer, g.lent = nil, false
	g.oldest = introspection.Moment{}
}

// beside reports whether a stream could join: it is at the same position as the
// members.
func (g *group) beside(l *unsharedStream) bool {
	for i := range g.Follows {
		if !g.cohort(i).Admits(l.Follows[i].Sub) {
			return false
		}
	}
	return true
}

// enroll makes slot an up-to-date member.
func (g *group) enroll(t *table, at int32) {
	s := &t.slots[at]
	s.kind, s.group, s.place, s.sent = memberSlot, g.index, int32(len(g.members)), g.end()
	g.members = append(g.members, at)
	g.setMembers(len(g.members))
}

// dismiss removes a member.
func (g *group) dismiss(t *table, at int32) {
	s := &t.slots[at]
	if s.sent != g.end() {
		g.behind--
	}
	last := len(g.members) - 1
	moved := g.members[last]
	g.members[s.place] = moved
	t.slots[moved].place = s.place
	g.members = g.members[:last]
	s.kind = unsharedSlot
	g.setMembers(last)
	if g.behind == 0 {
		g.written()
	}
}

func (g *group) setMembers(members int) {
	g.Streams = members
	for i := range g.Follows {
		g.cohort(i).SetMembers(members)
	}
}

// rest returns the bytes not yet written to a member. If many members are detached
// at once with much left, they share it.
func (g *group) rest(s *slot) []byte {
	rest := g.buffer[s.sent-g.base:]
	if len(rest) < lentFrom {
		return slices.Clone(rest)
	}
	g.lent = true
	return rest[:len(rest):len(rest)]
}
