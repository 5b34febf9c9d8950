package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/stream/watch"
)

// carryAuthorization keeps the authorization of a stream, if it has one, while its connection has a slot.
func (s *shard) carryAuthorization(l *unsharedStream) {
	if l.Authorization == nil {
		return
	}
	s.authorizations[l.slot] = l.Authorization
	key := s.table.key(l.slot)
	l.Authorization.Notify(func() { s.reportAuthorization(key) })
}

// reportAuthorization makes the shard look at a stream whose authorization has ended before its time, or has a
// switch.
func (s *shard) reportAuthorization(key uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll != nil {
		s.changedAuthorizations = append(s.changedAuthorizations, key)
		s.poll.Ring()
	}
}

// authorizationChanged applies what has changed in the authorization of a stream, if the stream still exists. A
// stream that is blocked has some time left to write what is pending, and its goodbye.
func (s *shard) authorizationChanged(key uint64) {
	at, there := s.table.find(key)
	if !there {
		return
	}
	l := s.unshared[at]
	switch {
	case l == nil && s.authorizations[at].ReasonToEnd(time.Now()) != "":
		s.farewell(at, time.Now())
	case l == nil:
		s.detachMember(at)
	case !l.blocked.IsZero():
		s.schedule(at, l.due(l.Deps.WriteTimeout))
	default:
		s.enqueue(l)
	}
}

// switchStream makes a stream follow the parts that its authorization says now.
func (s *shard) switchStream(l *unsharedStream) {
	switched := l.Switch(func(from, to *watch.Watch) {
		s.follow(to)
		s.unfollow(from)
	})
	if switched {
		l.key = l.groupKey()
	}
}

// memberDue returns when a member must end; zero: never.
func (s *shard) memberDue(at int32) time.Time {
	return session.Earlier(s.table.slots[at].due(), s.authorizations[at].EndsAt())
}
