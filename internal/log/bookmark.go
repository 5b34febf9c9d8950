package log

import (
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// addStatus adds a status event if the freshness differs from the last one sent. InSync
// is sent only once the subscriber has everything: before that, it would not be true.
func (s *Subscription) addStatus(b *Batch, v *storage.Version, atHead bool) {
	now := v.Status
	if s.ownStatus != nil {
		now = s.ownStatus
	}
	if storage.SameStatus(now, s.sentStatus) || now.State == stream.InSync && !atHead {
		return
	}
	s.sentStatus = now
	b.addEvent(stream.Event{Type: stream.StatusChange, State: now.State, Since: now.Since, Reason: now.Reason})
}

// addHorizon adds a bookmark at the reader's place if v is the first version that
// it sees after an outage, or after part of one. It precedes the changes after the
// outage: a gateway that follows this watch must never resume a position inside the
// outage, and has given out none of those yet.
func (s *Subscription) addHorizon(b *Batch, v *storage.Version) {
	if v.Complete() == s.origin {
		return
	}
	s.origin = v.Complete()
	b.addEvent(stream.Event{Type: stream.Bookmark, Revision: s.position.AsOf, Horizon: s.origin})
	b.boundary = true
}

// addWindow adds a bookmark if a window says something else than what the reader was told last.
func (s *Subscription) addWindow(b *Batch, v *storage.Version) {
	if v.Window.Told == s.told {
		return
	}
	b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: v.Revision}, v))
	b.boundary = true
}

// tellWindow is addWindow for a reader that has everything: one with an interval is told in the next tick.
func (s *Subscription) tellWindow(b *Batch, v *storage.Version) {
	if v.Window.Told != s.told && s.inTick(v) {
		s.addWindow(b, v)
	}
}

// Bookmark fills b with progress: the position has moved on, without data, since
// the last one that was sent. It returns false if it has not, or if Next has
// something.
func (s *Subscription) Bookmark(b *Batch) bool {
	b.reset(s.log)
	v := s.log.newest()
	if !s.begun || s.walking() || v.Generation != s.generation || v.Seq != s.cursor {
		return false
	}
	s.place(v.Revision, v)
	s.addHorizon(b, v)
	if !s.moved && b.Empty() {
		return false
	}
	if b.Empty() {
		b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: v.Revision}, v))
	}
	b.boundary = true
	s.moved = false
	return true
}
