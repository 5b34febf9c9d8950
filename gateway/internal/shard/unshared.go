package shard

import (
	"errors"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

func (s *shard) addUnshared(l *unsharedStream) {
	l.Turns = true
	s.unshared[l.slot] = l
	s.most = max(s.most, len(s.unshared))
}

// removeUnshared removes an unshared stream. A map never shrinks: the room that a rush
// of arrivals needed would stay allocated after its streams became members.
func (s *shard) removeUnshared(l *unsharedStream) {
	l.out.detach()
	delete(s.unshared, l.slot)
	if len(s.unshared) == 0 && s.most >= rushSize {
		s.unshared, s.most = map[int32]*unsharedStream{}, 0
	}
}

// serveUnshared serves the unshared streams that may have something to write, one
// after the other.
func (s *shard) serveUnshared(now time.Time) (busy bool) {
	s.wakeUnshared()
	began := time.Now() // the groups have had their time
	for n := len(s.ready); n > 0 && time.Since(began) < unsharedTurn; n-- {
		l := s.ready[0]
		s.ready[0], s.ready = nil, s.ready[1:]
		l.queued = false
		// A stream that was blocked while it waited gets its turn when its connection
		// takes bytes.
		if s.unshared[l.slot] == l && l.blocked.IsZero() && s.serveStream(l, now) {
			s.enqueue(l)
		}
	}
	return len(s.ready) > 0
}

// wakeUnshared gives a turn to the streams that may have news.
func (s *shard) wakeUnshared() {
	rung, alarmed := s.rung.Swap(false), s.alarmed.Swap(false)
	if !rung && !alarmed {
		return
	}
	for _, l := range s.unshared {
		if alarmed || !l.idles() {
			s.enqueue(l)
		}
	}
}

// enqueue queues a stream for a turn, unless its connection takes no bytes.
func (s *shard) enqueue(l *unsharedStream) {
	if !l.queued && l.blocked.IsZero() {
		l.queued = true
		s.ready = append(s.ready, l)
	}
}

// moves reports whether a blocked connection takes a byte: the system reports it
// as writable only when it has room for many.
func (s *shard) moves(l *unsharedStream, now time.Time) bool {
	n, err := s.flush(l, now)
	if n == 0 && errors.Is(err, epoll.ErrBlocked) && s.sockets.queues(l.handle) {
		s.block(l)
		return true
	}
	if n == 0 || err != nil && !errors.Is(err, epoll.ErrBlocked) {
		return false
	}
	if err != nil {
		s.block(l)
		return true
	}
	l.blocked = time.Time{}
	return true
}

// serveStream writes what an unshared stream has, for one turn. What there is goes out at once: the head of the
// response with the first changes.
func (s *shard) serveStream(l *unsharedStream, now time.Time) (busy bool) {
	for wrote := 0; wrote < turnBytes; {
		if !l.finished.IsZero() {
			return false
		}
		for !l.ending && !l.out.full() && l.speak(now) {
		}
		if l.out.empty() && !l.ending {
			if l.Busy() {
				return true
			}
			s.rest(l)
			return false
		}
		n, err := s.flush(l, now)
		wrote += n
		switch {
		case errors.Is(err, epoll.ErrBlocked):
			s.block(l)
			return false
		case errors.Is(err, epoll.ErrTaken):
			s.drop(l, introspection.LeftUnread)
			return false
		case err != nil:
			s.drop(l, introspection.LeftByItself)
			return false
		case l.ending:
			s.finish(l, now)
			return false
		}
	}
	return true
}

// flush writes the outbox.
func (s *shard) flush(l *unsharedStream, now time.Time) (n int, err error) {
	if l.out.empty() {
		return 0, nil
	}
	if len(l.out.slices) > 0 {
		n, err = s.p.WriteAll(l.handle, l.out.slices, l.out.file != nil)
		l.out.sent(n)
	}
	if err == nil && l.out.file != nil {
		var more int
		more, err = s.p.Send(l.handle, l.out.file, l.out.at)
		l.out.sentFile(more)
		n += more
	}
	if l.taken += n; l.taken >= leaseBytes {
		l.taken = 0
		l.Lease.Moved()
	}
	if err == nil {
		l.Flushed(now, l.out.said, nil)
	}
	return n, err
}

// block waits until the connection takes bytes again.
func (s *shard) block(l *unsharedStream) {
	l.blocked, l.awaits = time.Now(), true
	if s.p.Await(l.handle, s.table.key(l.slot), true) != nil {
		s.drop(l, introspection.LeftByAccident)
		return
	}
	s.schedule(l.slot, l.due(l.Deps.WriteTimeout))
}

// rest lets an up-to-date stream join its group, or wait unshared.
func (s *shard) rest(l *unsharedStream) {
	if !l.settled() || !s.join(l) {
		s.schedule(l.slot, l.due(l.Deps.WriteTimeout))
	}
}

// finish ends a stream whose last chunk was written, and lets its client read the
// rest: a connection that is closed with unread bytes is reset.
func (s *shard) finish(l *unsharedStream, now time.Time) {
	l.SaidGoodbye()
	l.finished = now
	if s.p.Finish(l.handle, s.table.key(l.slot)) != nil {
		s.drop(l, introspection.LeftByItself)
		return
	}
	s.schedule(l.slot, l.due(0))
}

// drop closes the connection of an unshared stream. A stream that got a goodbye is
// recorded with that reason, however its connection ends.
func (s *shard) drop(l *unsharedStream, why introspection.DepartureReason) {
	if !l.finished.IsZero() {
		why = introspection.DepartureReason(l.GoodbyeSaid)
	}
	l.CountBytes(l.out.said)
	s.deps.Subscribers.RecordEnd(l.Identity, l.Describe(l.Delivered), why)
	l.Close(l.out.said, why == introspection.LeftUnread)
	s.removeUnshared(l)
	s.forget(l)
}
