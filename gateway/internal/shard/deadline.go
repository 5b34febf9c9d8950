package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// patience returns the time until something is due; negative: nothing is.
func (s *shard) patience() time.Duration {
	next := session.Earlier(s.wheel.next(), s.quiet.next())
	if next.IsZero() {
		return -1
	}
	return max(time.Until(next), 0)
}

// look checks whether something is due for one connection.
func (s *shard) look(at int32, now time.Time) {
	l := s.unshared[at]
	if l == nil {
		due := s.memberDue(at)
		if due.IsZero() || due.After(now) {
			s.schedule(at, due)
			return
		}
		s.farewell(at, now)
		return
	}
	if due := l.due(l.Deps.WriteTimeout); due.After(now) {
		s.schedule(at, due)
		return
	}
	if !l.finished.IsZero() {
		s.drop(l, introspection.LeftByItself)
		return
	}
	if !l.blocked.IsZero() {
		if why := l.Overdue(now); why != "" {
			s.drop(l, introspection.DepartureReason(why))
			return
		}
		if !s.moves(l, now) {
			s.drop(l, introspection.LeftUnread)
			return
		}
	}
	s.enqueue(l)
}

// schedule adds a connection to the wheel.
func (s *shard) schedule(at int32, due time.Time) {
	c := &s.table.slots[at]
	if due.IsZero() || c.looked != 0 && c.looked <= introspection.Nanos(due) {
		return
	}
	c.looked = introspection.Nanos(s.wheel.add(s.table.key(at), due))
}

// drain draws the end time for each member, and for each stream that is blocked. The
// others draw their own.
func (s *shard) drain(now time.Time) {
	s.drains = true
	s.alarmed.Store(true)
	for at := range s.table.slots {
		if c := &s.table.slots[at]; c.kind == memberSlot {
			c.drain(now.Add(s.deps.Admission.GoodbyeDelay()))
			s.look(int32(at), now)
		}
	}
	for _, l := range s.unshared {
		if !l.blocked.IsZero() && !l.MustLeave(now) {
			s.schedule(l.slot, l.due(l.Deps.WriteTimeout))
		}
	}
}
