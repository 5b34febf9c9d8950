package gateway

import (
	"errors"
	"sync"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// shard is the shard pump: one goroutine that carries the streams of very many
// connections, all of plain HTTP/1.1. A stream that needs words of its own (a
// snapshot, a client that does not keep up) is a lone. One that has everything is
// a member of a group: those of the same watches at the same place, which get the
// same bytes, rendered once.
//
// The goroutine runs while there is a stream.
type shard struct {
	// Static after construction.
	g       *Gateway
	sockets sockets

	mu      sync.Mutex // guards the following fields
	poll    poller     // nil: the goroutine does not run
	arrived []*lone
	aborted bool // all streams are to be closed as they are

	// Owned by the goroutine.
	p       poller // poll
	table   table
	lones   map[int32]*lone // by slot
	named   map[string]*group
	groups  []*group // by index; nil: free
	bells   map[*stream.Watch]*bell
	wheel   *wheel
	drains  bool // the members know when they must leave
	notices []notice
	keys    []uint64
	slots   []int32
}

const (
	// turnBytes is how much one stream is written before others have their turn.
	turnBytes = 256 << 10
	// passMembers is how many members of a group are written before others have
	// their turn.
	passMembers = 512
	// sampled is how many writes one measurement of latency stands for.
	sampled = 64
	// lingering is how long a connection whose stream has ended is kept for its
	// client to read it to the end.
	lingering = 2 * time.Second
)

func newShard(g *Gateway, s sockets) *shard {
	return &shard{
		g: g, sockets: s,
		lones: map[int32]*lone{}, named: map[string]*group{}, bells: map[*stream.Watch]*bell{},
	}
}

// arrive hands a stream over. The error says why the shard cannot run; the stream
// is the caller's then.
func (s *shard) arrive(l *lone) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll == nil {
		p, err := s.sockets.newPoller()
		if err != nil {
			return err
		}
		s.poll = p
		go s.run(p)
	}
	s.arrived = append(s.arrived, l)
	s.poll.ring()
	return nil
}

// ring makes the shard look for news.
func (s *shard) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll != nil {
		s.poll.ring()
	}
}

// abort closes all streams as they are.
func (s *shard) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll != nil {
		s.aborted = true
		s.poll.ring()
	}
}

// run carries streams until there is none.
func (s *shard) run(p poller) {
	s.p, s.wheel = p, newWheel(time.Now())
	for busy := false; ; {
		busy = s.admit() || busy
		if s.table.count == 0 && s.retire() {
			return
		}
		if err := s.listen(busy); err != nil {
			s.g.log.Error("the shard pump lost its connections", "error", err)
			s.closeAll()
			continue
		}
		busy = s.serve(time.Now())
	}
}

// retire ends the goroutine, unless somebody has arrived meanwhile.
func (s *shard) retire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrived) > 0 {
		return false
	}
	s.poll, s.aborted = nil, false
	s.p.shut()
	s.table, s.drains = table{}, false
	return true
}

// admit takes in the streams that have arrived, and says whether there are any.
func (s *shard) admit() bool {
	s.mu.Lock()
	arrived, aborted := s.arrived, s.aborted
	s.arrived = nil
	s.mu.Unlock()
	for _, l := range arrived {
		s.welcome(l)
	}
	if aborted {
		s.closeAll()
	}
	return len(arrived) > 0
}

func (s *shard) welcome(l *lone) {
	l.slot = s.table.add(l.handle)
	s.lones[l.slot] = l
	for i := range l.follows {
		s.follow(l.follows[i].watch)
	}
	if err := s.p.watch(l.handle, s.table.key(l.slot)); err != nil {
		s.g.log.Error("a connection cannot be watched", "error", err)
		s.drop(l, false)
	}
}

func (s *shard) follow(w *stream.Watch) {
	if s.bells[w] == nil {
		s.bells[w] = startBell(w, s.ring)
	}
	s.bells[w].streams++
}

func (s *shard) unfollow(w *stream.Watch) {
	b := s.bells[w]
	if b.streams--; b.streams == 0 {
		close(b.stop)
		delete(s.bells, w)
	}
}

// listen waits for something to do, unless there is, and takes note of what
// happened to connections.
func (s *shard) listen(busy bool) error {
	timeout := time.Duration(0)
	if !busy {
		timeout = s.patience()
	}
	var err error
	s.notices, err = s.p.wait(s.notices[:0], timeout)
	for _, n := range s.notices {
		if at, there := s.table.find(n.key); there {
			s.notice(at, n)
		}
	}
	return err
}

// patience is the time until something is due; negative: nothing is.
func (s *shard) patience() time.Duration {
	next := s.wheel.next()
	for _, g := range s.groups {
		if g != nil {
			next = earlier(next, g.heartbeatAt())
		}
	}
	if next.IsZero() {
		return -1
	}
	return max(time.Until(next), 0)
}

func (s *shard) notice(at int32, n notice) {
	l := s.lones[at]
	switch {
	case l == nil: // a member: only its end can be told
		s.leave(at)
	case n.readable && s.p.discard(l.handle) && !n.gone:
	case n.gone || n.readable:
		s.drop(l, false)
	case n.writable:
		l.blocked = time.Time{}
		if s.p.await(l.handle, n.key, false) != nil {
			s.drop(l, false)
		}
	}
}

// serve lets everybody have a turn, and says whether somebody has more to be
// written now.
func (s *shard) serve(now time.Time) (busy bool) {
	if !s.drains && s.g.admission.isDraining() {
		s.drain(now)
	}
	for _, g := range s.groups {
		if g != nil {
			busy = s.serveGroup(g, now) || busy
		}
	}
	for _, l := range s.lones {
		if l.blocked.IsZero() {
			busy = s.serveLone(l, now) || busy
		}
	}
	s.keys = s.wheel.due(s.keys[:0], now)
	for _, key := range s.keys {
		if at, there := s.table.find(key); there && s.table.slots[at].looked <= now.UnixNano() {
			s.table.slots[at].looked = 0
			busy = s.look(at, now) || busy
		}
	}
	return busy
}

// look sees whether something is due for one connection.
func (s *shard) look(at int32, now time.Time) (busy bool) {
	l := s.lones[at]
	if l == nil {
		due := s.table.slots[at].due()
		if due.IsZero() || due.After(now) {
			s.schedule(at, due)
			return false
		}
		s.farewell(at, now)
		return true
	}
	if due := l.due(s.g.cfg.WriteTimeout); due.After(now) {
		s.schedule(at, due)
		return false
	}
	if !l.finished.IsZero() {
		s.drop(l, false)
		return false
	}
	if !l.blocked.IsZero() && !s.moves(l, now) {
		s.drop(l, true)
		return false
	}
	return true // serveLone sees to it
}

// moves says whether a connection takes a byte after all: the system tells only
// when it has room for many.
func (s *shard) moves(l *lone, now time.Time) bool {
	n, err := s.flush(l, now)
	if n == 0 || err != nil && !errors.Is(err, errBlocked) {
		return false
	}
	if err != nil {
		s.block(l)
		return true
	}
	l.blocked = time.Time{}
	return s.p.await(l.handle, s.table.key(l.slot), false) == nil
}

// schedule asks the wheel to look at a connection.
func (s *shard) schedule(at int32, due time.Time) {
	c := &s.table.slots[at]
	if due.IsZero() || c.looked != 0 && c.looked <= due.UnixNano() {
		return
	}
	c.looked = s.wheel.add(s.table.key(at), due).UnixNano()
}

// serveGroup says what is new to a group, and writes it to some of the members.
func (s *shard) serveGroup(g *group, now time.Time) (busy bool) {
	switch {
	case g.removed():
		s.each(g, func(at int32) { s.farewellFor(at, stream.GoodbyeWatchRemoved) })
		return true
	case !g.near():
		// A snapshot, say: each takes it at a pace of its own.
		s.each(g, func(at int32) { s.secede(at) })
		return true
	}
	g.advance(now)
	s.pass(g)
	return g.behind > 0
}

// each calls f for those who are members now; f may take them out.
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
		oldest := g.oldest // gone once all have it
		s.writeMember(g, at, c)
		if n%sampled == 0 && !oldest.IsZero() {
			s.g.metrics.commitToWrite(time.Since(oldest))
		}
	}
}

func (s *shard) writeMember(g *group, at int32, c *slot) {
	n, err := s.p.write(c.handle, g.buffer[c.sent-g.base:])
	c.sent += uint64(n)
	switch {
	case err == nil:
		if g.behind--; g.behind == 0 {
			g.written()
		}
	case errors.Is(err, errBlocked):
		s.block(s.secede(at))
	default:
		s.leave(at)
	}
}

// serveLone lets a stream of its own say what it has, for a turn.
func (s *shard) serveLone(l *lone, now time.Time) (busy bool) {
	for wrote := 0; wrote < turnBytes; {
		if !l.finished.IsZero() {
			return false
		}
		n, err := s.flush(l, now)
		wrote += n
		switch {
		case errors.Is(err, errBlocked):
			s.block(l)
			return false
		case err != nil:
			s.drop(l, false)
			return false
		case l.ending:
			s.finish(l, now)
			return false
		case !l.speak(now):
			s.rest(l)
			return false
		}
	}
	return true
}

// flush writes the outbox.
func (s *shard) flush(l *lone, now time.Time) (int, error) {
	if l.out.empty() {
		return 0, nil
	}
	n, err := s.p.writeAll(l.handle, l.out.slices)
	l.out.sent(n)
	if err == nil {
		l.flushed(now, l.out.said, nil)
	}
	return n, err
}

// block waits until the connection takes bytes again.
func (s *shard) block(l *lone) {
	l.blocked = time.Now()
	if s.p.await(l.handle, s.table.key(l.slot), true) != nil {
		s.drop(l, false)
		return
	}
	s.schedule(l.slot, l.due(s.g.cfg.WriteTimeout))
}

// rest lets a stream that has everything join its group, or wait by itself.
func (s *shard) rest(l *lone) {
	if !l.settled() || !s.join(l) {
		s.schedule(l.slot, l.due(s.g.cfg.WriteTimeout))
	}
}

func (s *shard) join(l *lone) bool {
	g := s.named[l.key]
	if g == nil {
		g = s.found(l)
	}
	if !g.beside(l) {
		return false // a bell is about to ring for one of them
	}
	c := &s.table.slots[l.slot]
	c.retryMS = int32(l.retry.Milliseconds())
	c.began, c.tooOld, c.leaveAt = l.began.UnixNano(), nanosOf(l.tooOld), 0
	g.enroll(&s.table, l.slot)
	delete(s.lones, l.slot)
	l.release()
	s.schedule(l.slot, c.due())
	return true
}

// found makes a group that is where l is.
func (s *shard) found(l *lone) *group {
	g := &group{conversation: l.fork(), key: l.key, index: int32(len(s.groups))}
	for i := range s.groups {
		if s.groups[i] == nil {
			g.index = int32(i)
		}
	}
	if int(g.index) == len(s.groups) {
		s.groups = append(s.groups, nil)
	}
	s.groups[g.index], s.named[g.key] = g, g
	return g
}

// secede makes a stream of its own of a member, with what it was not written.
func (s *shard) secede(at int32) *lone {
	c := &s.table.slots[at]
	g := s.groups[c.group]
	l := &lone{conversation: g.fork(), key: g.key, handle: c.handle, slot: at}
	l.retry = time.Duration(c.retryMS) * time.Millisecond
	l.began, l.tooOld = timeOf(c.began), timeOf(c.tooOld)
	if rest := g.rest(c); len(rest) > 0 {
		l.out.raw(rest)
	}
	s.dismiss(g, at)
	s.lones[at] = l
	return l
}

func (s *shard) dismiss(g *group, at int32) {
	g.dismiss(&s.table, at)
	if len(g.members) == 0 {
		g.release()
		s.groups[g.index] = nil
		delete(s.named, g.key)
	}
}

// leave ends a member whose client has left.
func (s *shard) leave(at int32) {
	c := &s.table.slots[at]
	g := s.groups[c.group]
	l := &lone{conversation: g.conversation, handle: c.handle, slot: at}
	s.g.log.Debug("stream ended", "transport", g.transport(), "watches", len(g.follows), "age", time.Since(timeOf(c.began)))
	s.dismiss(g, at)
	s.forget(l)
	s.g.metrics.streamClosed(g.transport())
}

// farewell sends a member away whose time has come.
func (s *shard) farewell(at int32, now time.Time) {
	reason := stream.GoodbyeMaxAge
	if leaveAt := timeOf(s.table.slots[at].leaveAt); !leaveAt.IsZero() && !leaveAt.After(now) {
		reason = stream.GoodbyeDraining
	}
	s.farewellFor(at, reason)
}

func (s *shard) farewellFor(at int32, reason stream.GoodbyeReason) {
	s.secede(at).leave(reason)
}

// drain draws for each member when it must leave. Lones do so themselves.
func (s *shard) drain(now time.Time) {
	s.drains = true
	for at := range s.table.slots {
		if c := &s.table.slots[at]; c.group >= 0 {
			c.leaveAt = now.Add(s.g.admission.goodbyeDelay()).UnixNano()
			s.look(int32(at), now)
		}
	}
}

// finish ends a stream whose last chunk was written, and lets its client read it
// to the end: a connection that is closed with bytes unread is reset.
func (s *shard) finish(l *lone, now time.Time) {
	l.saidGoodbye()
	l.finished = now
	if s.p.finish(l.handle, s.table.key(l.slot)) != nil {
		s.drop(l, false)
		return
	}
	s.schedule(l.slot, l.due(0))
}

// drop closes the connection of a stream of its own.
func (s *shard) drop(l *lone, timedOut bool) {
	delete(s.lones, l.slot)
	l.close(l.out.said, timedOut, nil)
	s.forget(l)
}

// forget closes a connection, and gives back what stands for it.
func (s *shard) forget(l *lone) {
	s.sockets.close(l.handle)
	s.table.remove(l.slot)
	for i := range l.follows {
		s.unfollow(l.follows[i].watch)
	}
	s.g.admission.leave()
}

func (s *shard) closeAll() {
	for at := range s.table.slots {
		switch {
		case s.table.slots[at].group >= 0:
			s.leave(int32(at))
		case s.lones[int32(at)] != nil:
			s.drop(s.lones[int32(at)], false)
		}
	}
}
