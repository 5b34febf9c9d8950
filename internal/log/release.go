package log

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Intervals are the intervals at which readers can have changes. There are few of them, so that readers
// share what they are sent.
var Intervals = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
}

// releases has, for each interval, the state that all readers of the log are sent in one tick: the newest
// one at the time at which the first of them asked. So readers at different places are at the same one
// after the tick, and have the same from there on. The states are pinned until the tick is over.
//
// All methods may be called from any goroutine.
type releases struct {
	kept atomic.Int32 // states that are pinned

	mu sync.Mutex // guards the following field
	of map[time.Duration]released
}

// released is the state of one tick.
type released struct {
	tick int64
	pin  *pin.Pin // nil: it could not be pinned
}

// tickAt returns the number of the tick of an interval at a time, and when the next one begins.
func tickAt(now time.Time, interval time.Duration) (tick int64, next time.Time) {
	nanos := now.UnixNano()
	tick = nanos / int64(interval)
	return tick, now.Add(time.Duration((tick+1)*int64(interval) - nanos))
}

// take returns the state of a tick: v, if nobody has asked for it yet.
func (r *releases) take(l *Log, v *storage.Version, interval time.Duration, tick int64) *storage.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, has := r.of[interval]
	if has && known.tick == tick {
		switch shared := known.pin.Version(); {
		case shared == nil: // it was taken away
		case shared.Generation == v.Generation:
			return shared
		case shared.Generation > v.Generation:
			return v
		}
	}
	r.drop(l, interval)
	if r.of == nil {
		r.of = map[time.Duration]released{}
	}
	r.of[interval] = released{tick, l.pins.Keep(v)}
	r.kept.Add(1)
	return v
}

// drop forgets the state of an interval. r.mu is held.
func (r *releases) drop(l *Log, interval time.Duration) {
	if known, has := r.of[interval]; has {
		l.pins.Release(known.pin)
		delete(r.of, interval)
		r.kept.Add(-1)
	}
}

// expire forgets the states of ticks that are over.
func (r *releases) expire(l *Log) {
	if r.kept.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for interval, known := range r.of {
		if tick, _ := tickAt(now, interval); tick != known.tick {
			r.drop(l, interval)
		}
	}
}

// release begins to send the state of the present tick, unless the reader has that, or a newer one: then
// changes wait for the next tick, and only what does not wakes the reader. A change after a quiet time is sent
// at once.
func (s *Subscription) release(b *Batch, v *storage.Version) bool {
	if !s.inTick(v) {
		return false
	}
	to := s.log.releases.take(s.log, v, s.options.Interval, s.tick)
	if to.Seq <= s.cursor {
		s.waitForTick(v)
		return false
	}
	if s.cursor < to.Forgotten {
		s.beginAgain(b, v, stream.ResetExpired)
		return true
	}
	from := to.After(s.cursor)
	s.addHorizon(b, to)
	s.startWalk(b, walk{
		v: to, purpose: releasing, deletes: true, at: from, upserts: from,
		began: s.cursor, revision: s.position.AsOf, complete: s.position.AsOf,
	})
	return true
}

// inTick begins a tick of the reader's interval, unless the reader has had its share of the present one: then
// what there is waits for the next. Without an interval nothing waits.
func (s *Subscription) inTick(v *storage.Version) bool {
	if s.options.Interval == 0 {
		return true
	}
	tick, _ := tickAt(time.Now(), s.options.Interval)
	if tick == s.tick {
		s.waitForTick(v)
		return false
	}
	s.tick = tick
	return true
}

// waitForTick makes the reader wait for the next tick, unless the freshness changes.
func (s *Subscription) waitForTick(v *storage.Version) {
	_, s.releaseAt = tickAt(time.Now(), s.options.Interval)
	s.changed = v.Urgent
}

// released ends a release. The freshness that waited for it is that of now: what came since waits for the
// next tick.
func (s *Subscription) released(b *Batch, w *walk) {
	b.committed, b.age = w.v.Committed, w.v.Age
	// What was examined last may be superseded: then the id has no other event.
	if skipped := w.skipped(s.log.isView); skipped > 0 || b.Empty() || s.untold(w.v) {
		s.skipped += skipped
		b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: w.v.Revision, Skipped: skipped}, w.v))
	}
	s.addStatus(b, s.log.newest(), true)
}
