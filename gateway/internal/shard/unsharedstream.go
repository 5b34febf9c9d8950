package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/log"
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
	taken  int          // bytes that the connection took since it counted as progress

	blocked  time.Time // since when no byte was taken; zero: it is not blocked
	awaits   bool      // the poller reports when bytes are taken
	ending   bool      // the last chunk is in out
	finished time.Time // when the last chunk was sent; zero: it was not
}

func newUnsharedStream(s *shard, c session.Session, h epoll.Handle) *unsharedStream {
	l := &unsharedStream{Session: c, handle: h, shard: s}
	l.out.bare = isStream(h)
	l.key = l.groupKey()
	l.Lease.CallWhenGranted(l.called)
	l.text = session.NewText(&l.Session, &l.out, wire.Sum{})
	return l
}

// groupKey is the key of the group that the stream could join: its members are sent the same bytes, chunks included.
func (l *unsharedStream) groupKey() string {
	key := l.GroupKey()
	if l.out.bare {
		key += "\x00bare"
	}
	return key
}

// speak adds the next batch, heartbeat or goodbye to the outbox. It returns
// false if there is nothing now.
func (l *unsharedStream) speak(now time.Time) bool {
	if reason := l.ReasonToEnd(now); reason != "" {
		l.sayGoodbye(reason)
		return true
	}
	l.shard.switchStream(l)
	if l.speakStretch(now) {
		return true
	}
	for range l.Follows {
		i := l.next
		l.next = (l.next + 1) % len(l.Follows)
		if l.turnOf(i) {
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

// turnOf adds one batch of the watch at the index, if it has one.
func (l *unsharedStream) turnOf(i int) bool {
	if !l.TurnOf(i, &l.text) {
		return false
	}
	l.out.seal()
	if l.text.Zipper == nil {
		l.out.holds += l.Batch.Held()
	}
	return true
}

// speakStretch adds what all streams at the spot are sent, if there is such a thing. It returns false if
// there is nothing, or if the next batch must be found in another way.
//
// A stream for which the stretch does not exist reads as much as it has, even if it does not make it:
// so it arrives at the spots where the others are.
func (l *unsharedStream) speakStretch(now time.Time) bool {
	spot, ok := l.Spot()
	if !ok {
		return false
	}
	key := stretchKey{spot, l.Format, l.Coding, l.out.bare}
	of := l.shard.table.slots[l.slot].ref
	found, makes := l.shard.stretches.find(key, of, now)
	if found != nil {
		return l.take(spot, found)
	}
	r, ok := l.Follows[0].Sub.Record()
	if !ok {
		return false
	}
	from, said, holds, before := len(l.out.slices), l.out.said, l.out.holds, l.text.Restart()
	l.read(r)
	t := &stretch{key: key, of: of, said: l.out.said - said, sum: l.text.Resume(before)}
	if t.Stretch, ok = r.Stretch(); ok && makes && !t.Small() && l.shard.stretches.put(t, l.out.slices[from:], now) {
		l.out.cut(from, holds)
		l.out.attach(t.file, 0)
	}
	return l.out.said > said
}

// read adds a stretch to the outbox, as it is in the log.
func (l *unsharedStream) read(r *log.Recording) {
	full := l.out.unsent + stretchBytes
	for l.out.unsent < full && l.out.holds < outboxHolds && l.turnOf(0) {
		if r.Note(&l.Batch); r.Done() {
			return
		}
	}
}

// take adds a stretch that exists, whose file is held. It returns false if the stream cannot take it.
func (l *unsharedStream) take(at log.Spot, t *stretch) bool {
	if !l.Take(at, &t.Stretch) {
		t.file.Release()
		return false
	}
	l.text.Wrote(t.sum, t.said)
	l.out.attach(t.file, t.said)
	return true
}

// sayGoodbye ends the stream with a goodbye.
func (l *unsharedStream) sayGoodbye(reason stream.GoodbyeReason) {
	l.Goodbye(reason, &l.text)
	l.out.seal()
	if !l.out.bare {
		l.out.raw([]byte(wire.LastChunk))
	}
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
