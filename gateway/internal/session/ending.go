package session

import (
	"time"

	"github.com/watchtide/watchtide/stream"
)

// ReasonToEnd returns why the server must end the stream now, or "".
func (c *Session) ReasonToEnd(now time.Time) stream.GoodbyeReason {
	why := c.Term.ReasonToEnd(now, c.Deps.Admission, c.Until && c.synced(), c.Removed())
	if c.Answer == nil {
		return why
	}
	switch {
	case c.Answer.Complete():
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

func (c *Session) synced() bool {
	for i := range c.Follows {
		if !c.Follows[i].Sub.Synced() {
			return false
		}
	}
	return true
}

// Removed returns why the stream must end if one of its watches was removed from the registry,
// else "". A watch that is gone takes precedence over one that was replaced.
func (c *Session) Removed() (why stream.GoodbyeReason) {
	for i := range c.Follows {
		if one := Removed(c.Follows[i].Watch); one != "" && why != stream.GoodbyeWatchRemoved {
			why = one
		}
	}
	return why
}

// MustLeave reports whether it is this stream's turn to end while the gateway
// drains.
func (c *Session) MustLeave(now time.Time) bool { return c.mustLeave(now, c.Deps.Admission) }

// FarewellPatience is how long a stream that must end may take to write its goodbye.
// After that it is cut off, so that a client that does not read cannot hold it open.
const FarewellPatience = 2 * time.Second

// Overdue returns why the stream must be cut off now although its client takes no
// bytes, or "" if it need not be.
func (c *Session) Overdue(now time.Time) stream.GoodbyeReason {
	before := now.Add(-FarewellPatience)
	switch {
	case c.MustLeave(now) && !before.Before(c.LeaveAt):
		return stream.GoodbyeDraining
	case !c.TooOld.IsZero() && !before.Before(c.TooOld):
		return stream.GoodbyeMaxAge
	}
	if at := c.Pass.CutAt(FarewellPatience); !at.IsZero() && !now.Before(at) {
		return c.Pass.ReasonToEnd(now)
	}
	return ""
}

// OverdueAt returns when the stream must be cut off; zero: never.
func (c *Session) OverdueAt() time.Time {
	at := Earlier(c.TooOld, c.LeaveAt)
	if !at.IsZero() {
		at = at.Add(FarewellPatience)
	}
	return Earlier(at, c.Pass.CutAt(FarewellPatience))
}

// Goodbye ends the stream deliberately.
func (c *Session) Goodbye(reason stream.GoodbyeReason, out Encoder) {
	if reason == stream.GoodbyeRevoked && c.Format != 0 {
		c.withdraw(out)
	}
	c.GoodbyeSaid = reason
	out.WriteGoodbye(c, reason)
}

// SaidGoodbye counts a goodbye that was sent.
func (c *Session) SaidGoodbye() {
	c.Deps.Metrics.EventsOut(c.Transport(), stream.Goodbye, 1)
	c.Delivered.Events++
	c.Deps.Metrics.Goodbye(c.Transport(), c.GoodbyeSaid)
}
