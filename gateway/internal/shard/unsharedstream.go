package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/stream"
)

// unsharedStream is a stream of a shard that is not, or not yet, a member of a group:
// it begins, catches up, or ends.
//
// Owned by the shard.
type unsharedStream struct {
	session.Session
	key    string // of the group that it could join
	shard  *shard
	handle epoll.Handle // until it has a slot
	slot   int32
	queued bool // for a turn
	next   int  // the watch whose turn it is
	out    outbox
	text   session.Text // to out

	blocked  time.Time // since when no byte was taken; zero: it is not blocked
	awaits   bool      // the poller reports when bytes are taken
	ending   bool      // the last chunk is in out
	finished time.Time // when the last chunk was sent; zero: it was not
}

func newUnsharedStream(s *shard, c session.Session, h epoll.Handle) *unsharedStream {
	l := &unsharedStream{Session: c, key: c.GroupKey(), handle: h, shard: s}
	l.Lease.CallWhenGranted(l.called)
	l.text = session.NewText(&l.Session, &l.out, wire.Sum{})
	return l
}

// speak adds the next batch, heartbeat or goodbye to the outbox. It returns
// false if there is nothing now.
func (l *unsharedStream) speak(now time.Time) bool {
	if reason := l.ReasonToEnd(now); reason != "" {
		l.sayGoodbye(reason)
		return true
	}
	l.shard.switchStream(l)
	for range l.Follows {
		i := l.next
		l.next = (l.next + 1) % len(l.Follows)
		if l.TurnOf(i, &l.text) {
			l.out.seal()
			if l.text.Zipper == nil {
				l.out.holds += l.Batch.Held()
			}
			return true
		}
	}
	if l.Bookmarks(now, &l.text) {
		l.out.seal()
		return true
	}
	if l.out.empty() && !now.Before(l.HeartbeatAt()) {
		l.text.WriteHeartbeat()
		l.out.seal()
		return true
	}
	return false
}

// sayGoodbye ends the stream with a goodbye.
func (l *unsharedStream) sayGoodbye(reason stream.GoodbyeReason) {
	l.Goodbye(reason, &l.text)
	l.out.seal()
	l.out.raw([]byte(wire.LastChunk))
	l.ending = true
}

// called ends the wait for a lease in the snapshot budget.
func (l *unsharedStream) called() { l.shard.call(l) }

// idles reports whether the stream ignores news, since all its watches wait for their
// turn.
func (l *unsharedStream) idles() bool {
	for i := range l.Follows {
		if !l.Follows[i].Sub.Paused() {
			return false
		}
	}
	return true
}

// settled reports whether the stream is up to date, and so could join a group.
func (l *unsharedStream) settled() bool {
	if l.Until || !l.LeaveAt.IsZero() {
		return false
	}
	for i := range l.Follows {
		if !l.Follows[i].Sub.CaughtUp() {
			return false
		}
	}
	return true
}

// due returns when the shard must check the stream; zero: only on an event.
func (l *unsharedStream) due(patience time.Duration) time.Time {
	switch {
	case !l.finished.IsZero():
		return l.finished.Add(netconn.Linger)
	case !l.blocked.IsZero():
		return session.Earlier(l.blocked.Add(patience), l.OverdueAt())
	}
	return l.WakeAt()
}
