package session

import (
	"time"

	"github.com/watchtide/watchtide/stream"
)

// ReasonToEnd returns why the server must end the stream now, or "".
func (s *Session) ReasonToEnd(now time.Time) stream.GoodbyeReason {
	why := s.Term.ReasonToEnd(now, s.Deps.Admission, s.Until && s.synced(), s.Removed())
	if s.Answer == nil {
		return why
	}
	switch {
	case s.Answer.Complete():
		return stream.GoodbyeComplete
	case why == stream.GoodbyeDraining, why == stream.GoodbyeMaxAge:
		return "" // see Answer.EndsAt
	}
	return why
}

// Answer is what decides on the end of a session that is the answer to one request. Such a session has
// neither heartbeats nor bookmarks, and is sent no goodbye that is counted.
type Answer interface {
	Complete() bool
	// EndsAt returns when the answer ends with what there is by then.
	EndsAt() time.Time
}

func (s *Session) synced() bool {
	for i := range s.Follows {
		if !s.Follows[i].Sub.Synced() {
			return false
		}
	}
	return true
}

// Removed returns why the stream must end if one of its watches was removed from the registry,
// else "". A watch that is gone takes precedence over one that was replaced.
func (s *Session) Removed() (why stream.GoodbyeReason) {
	for i := range s.Follows {
		if one := Removed(s.Follows[i].Watch); one != "" && why != stream.GoodbyeWatchRemoved {
			why = one
		}
	}
	return why
}

// MustLeave reports whether it is this stream's turn to end while the gateway
// drains.
func (s *Session) MustLeave(now time.Time) bool { return s.mustLeave(now, s.Deps.Admission) }

// FarewellPatience is how long a stream that must end may take to write its goodbye.
// After that it is cut off, so that a client that does not read cannot hold it open.
const FarewellPatience = 2 * time.Second

// Overdue returns why the stream must be cut off now although its client takes no
// bytes, or "" if it need not be.
func (s *Session) Overdue(now time.Time) stream.GoodbyeReason {
	before := now.Add(-FarewellPatience)
	switch {
	case s.MustLeave(now) && !before.Before(s.LeaveAt):
		return stream.GoodbyeDraining
	case !s.TooOld.IsZero() && !before.Before(s.TooOld):
		return stream.GoodbyeMaxAge
	}
	if at := s.Authorization.CutAt(FarewellPatience); !at.IsZero() && !now.Before(at) {
		return s.Authorization.ReasonToEnd(now)
	}
	return ""
}

// OverdueAt returns when the stream must be cut off; zero: never.
func (s *Session) OverdueAt() time.Time {
	at := Earlier(s.TooOld, s.LeaveAt)
	if !at.IsZero() {
		at = at.Add(FarewellPatience)
	}
	return Earlier(at, s.Authorization.CutAt(FarewellPatience))
}

// Goodbye ends the stream deliberately.
func (s *Session) Goodbye(reason stream.GoodbyeReason, out Encoder) {
	if (reason == stream.GoodbyeRevoked || len(s.Authorization.Losses()) > 0) && s.Format != 0 {
		s.withdraw(out)
	}
	s.GoodbyeSaid = reason
	out.WriteGoodbye(s, reason)
}

// SaidGoodbye counts a goodbye that was sent.
func (s *Session) SaidGoodbye() {
	s.Deps.Metrics.EventsOut(s.Transport(), stream.Goodbye, 1)
	s.Delivered.Events++
	s.Deps.Metrics.Goodbye(s.Transport(), s.GoodbyeSaid)
}
