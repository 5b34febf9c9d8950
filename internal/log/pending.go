package log

import (
	"time"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Pending returns about how many bytes Next has to deliver before the subscription
// has everything, at most limit, and whether they are a whole snapshot rather than
// what is newer than a position. Changes that a reader near the head gets one by one are
// not counted, nor are those that a reader with an interval gets in one tick.
//
// It is cheap enough to be called before each Next.
func (s *Subscription) Pending(limit int) (bytes int, whole bool) {
	v := s.log.newest()
	if s.walking() && s.generation == v.Generation {
		return s.pendingOfWalk(v, limit), s.walk.purpose == snapshot
	}
	if !v.Primed() {
		return 0, false
	}
	from, whole := s.firstPlace(v)
	return v.BytesFrom(from, limit), whole
}

func (s *Subscription) pendingOfWalk(newest *storage.Version, limit int) int {
	w, v := s.walk, s.pin.Version()
	if w.purpose == releasing {
		return 0
	}
	from := w.at
	if w.deletes {
		from = w.upserts
	}
	if v == nil { // it was taken away
		v, from = newest, newest.After(w.paused.passed)
		if w.deletes {
			from = v.After(w.paused.upserts)
		}
	}
	if w.replay && v.BytesFrom(from, storage.ReplaySize) < storage.ReplaySize {
		return 0
	}
	return v.BytesFrom(from, limit)
}

// firstPlace returns where the walk to the head of v would begin.
func (s *Subscription) firstPlace(v *storage.Version) (from storage.Place, whole bool) {
	switch r := s.options.Resume; {
	case s.begun && v.Generation != s.generation:
		return v.Normalize(storage.Place{}), true
	case s.begun:
		return s.nextPlace(v)
	case r == nil || !v.Resumable(*r, v.Epoch):
		return v.Normalize(storage.Place{}), true
	case r.AsOf > v.Revision && (s.aheadUntil.IsZero() || time.Now().Before(s.aheadUntil)):
		return storage.Place{Segment: len(v.Segments)}, false
	case r.AsOf > v.Revision, r.Upserts == 0:
		return v.Normalize(storage.Place{}), r.AsOf > v.Revision
	default:
		return v.NewerThan(r.Upserts), false
	}
}

// nextPlace is like firstPlace, for a reader that has already begun.
func (s *Subscription) nextPlace(v *storage.Version) (from storage.Place, whole bool) {
	if v.Seq == s.cursor {
		return storage.Place{Segment: len(v.Segments)}, false
	}
	from = v.After(s.cursor)
	if s.options.Interval > 0 && s.cursor >= v.Forgotten || s.cursor >= v.Intact && v.BytesFrom(from, storage.ReplaySize) < storage.ReplaySize {
		return storage.Place{Segment: len(v.Segments)}, false
	}
	if s.cursor < v.Forgotten {
		return v.Normalize(storage.Place{}), true
	}
	return from, false
}

// Pause keeps Next from reading until Unpause, and from pinning a version unless a
// walk is under way. Next then sends one status, which says why the subscriber waits.
func (s *Subscription) Pause(reason string) {
	if s.paused {
		return
	}
	s.paused = true
	if s.walking() {
		return // its status already says that it has not caught up
	}
	s.ownStatus = &stream.Status{State: stream.Resyncing, Since: time.Now(), Reason: reason}
	if !s.begun && s.options.Resume == nil {
		s.ownStatus.State = stream.Priming
	}
}

// Paused reports whether Pause was called and Unpause was not yet.
func (s *Subscription) Paused() bool { return s.paused }

// Unpause lets Next read again.
func (s *Subscription) Unpause() {
	if !s.paused {
		return
	}
	s.paused = false
	if !s.walking() {
		s.ownStatus = nil
	}
}

// NextStatus fills b with the freshness of the watch, if it differs from what the
// last one sent, and with nothing else.
func (s *Subscription) NextStatus(b *Batch) bool {
	b.reset(s.log)
	s.addStatus(b, s.log.newest(), false)
	return !b.Empty()
}
