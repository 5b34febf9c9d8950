package log

import (
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Pending returns about how many bytes Next has to deliver before the subscription
// has everything, at most limit, and whether they are a whole snapshot rather than
// what is newer than a position. What a reader near the head gets change by change
// is not counted. What is outside of the prefix is counted.
//
// It is cheap enough to be called before each Next.
func (s *Subscription) Pending(limit int) (bytes int, whole bool) {
	v := s.log.head.Load()
	if s.walking() && s.generation == v.generation {
		return s.pendingOfWalk(v, limit), s.walk.purpose == snapshot
	}
	if !v.primed() {
		return 0, false
	}
	from, whole := s.firstPlace(v)
	return v.bytesFrom(from, limit), whole
}

func (s *Subscription) pendingOfWalk(newest *version, limit int) int {
	w, v := &s.walk, s.pin.version()
	from := w.at
	if w.deletes {
		from = w.upserts
	}
	if v == nil { // it was taken away
		v, from = newest, newest.after(w.paused.passed)
		if w.deletes {
			from = v.after(w.paused.upserts)
		}
	}
	if w.replay && v.bytesFrom(from, replayBytes) < replayBytes {
		return 0
	}
	return v.bytesFrom(from, limit)
}

// firstPlace returns where the walk to the head of v would begin.
func (s *Subscription) firstPlace(v *version) (from place, whole bool) {
	switch r := s.options.Resume; {
	case s.begun && v.generation != s.generation:
		return v.normalize(place{}), true
	case s.begun:
		return s.nextPlace(v)
	case r == nil || !v.resumable(*r, stream.NarrowEpoch(v.epoch, s.options.Prefix)):
		return v.normalize(place{}), true
	case r.AsOf > v.revision && (s.hold.IsZero() || time.Now().Before(s.hold)):
		return place{segment: len(v.segments)}, false
	case r.AsOf > v.revision, r.Upserts == 0:
		return v.normalize(place{}), r.AsOf > v.revision
	default:
		return v.newerThan(r.Upserts), false
	}
}

// nextPlace is like firstPlace, for a reader that has already begun.
func (s *Subscription) nextPlace(v *version) (from place, whole bool) {
	if v.seq == s.cursor {
		return place{segment: len(v.segments)}, false
	}
	from = v.after(s.cursor)
	if s.cursor >= v.intact && v.bytesFrom(from, replayBytes) < replayBytes {
		return place{segment: len(v.segments)}, false
	}
	if s.cursor < v.forgotten {
		return v.normalize(place{}), true
	}
	return from, false
}

// resumable reports whether the changes after a position are known, once the version
// has reached it.
func (v *version) resumable(r stream.Position, epoch string) bool {
	return r.Epoch == epoch && (r.AsOf > v.revision || v.canResume(r))
}

// Hold keeps Next from reading until Release, and from pinning a version unless a
// walk is under way. Next tells the subscriber once why it waits.
func (s *Subscription) Hold(reason string) {
	if s.held {
		return
	}
	s.held = true
	if s.walking() {
		return // its status already says that it is not there yet
	}
	s.own = stream.Status{State: stream.Resyncing, Since: time.Now(), Reason: reason}
	if !s.begun && s.options.Resume == nil {
		s.own.State = stream.Priming
	}
}

// Held reports whether Hold was called and Release was not yet.
func (s *Subscription) Held() bool { return s.held }

// Release lets Next read again.
func (s *Subscription) Release() {
	if !s.held {
		return
	}
	s.held = false
	if !s.walking() {
		s.own = stream.Status{}
	}
}

// NextStatus fills b with the freshness of the watch, if it differs from what the
// subscriber was last told, and with nothing else.
func (s *Subscription) NextStatus(b *Batch) bool {
	b.reset(s.log)
	s.addStatus(b, s.log.head.Load(), false)
	return !b.Empty()
}
