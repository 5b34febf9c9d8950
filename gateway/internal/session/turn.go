package session

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
)

// Turn writes one batch of each watch that has one.
func (s *Session) Turn(out Encoder) bool {
	said := false
	for i := range s.Follows {
		said = s.TurnOf(i, out) || said
	}
	return said
}

// TurnOf writes one batch of the watch at the index, if it has one.
func (s *Session) TurnOf(i int, out Encoder) bool {
	f := &s.Follows[i]
	if s.Until && f.Sub.Synced() {
		return false // its part of this response is complete
	}
	if f.waits = s.waits(i); f.waits {
		return false
	}
	s.check(f)
	if !s.next(f) {
		return false
	}
	s.Lease.Moved()
	s.share(i)
	s.WriteBatch(f, out)
	return true
}

// waits reports whether a watch lets another one go first that is in the middle of a large
// transaction, or of deletes: until that is over, no id can be sent for any of them, and two
// watches that were never at such a place at the same time would never have one. The reset with which
// another part of a watch begins waits in any case, since it must have an id.
func (s *Session) waits(of int) bool {
	if s.Follows[of].Sub.Uncovered() {
		return false
	}
	for i := range s.Follows {
		if sub := s.Follows[i].Sub; sub.Uncovered() && (sub.Busy() || s.Follows[of].Sub.Replaces()) {
			return true
		}
	}
	return false
}

// next fills the batch with the next flush of a watch. It returns false if there is
// nothing now.
func (s *Session) next(f *Follow) bool {
	if !s.Turns {
		return f.Sub.Next(&s.Batch)
	}
	if f.Sub.NextTurn(&s.Batch) {
		return true
	}
	if f.Sub.Busy() {
		s.Lease.Moved() // the client is not the cause
	}
	return false
}

// share tells the other watches that the connection also carries the batch of one.
func (s *Session) share(of int) {
	for i := range s.Follows {
		if i != of {
			s.Follows[i].Sub.Moved(s.Batch.Bytes())
		}
	}
}

// Busy reports whether a watch has more to read, although its last turn wrote
// nothing.
func (s *Session) Busy() bool {
	for i := range s.Follows {
		if f := &s.Follows[i]; f.waits && !s.waits(i) || f.Sub.Busy() {
			return true
		}
	}
	return false
}

// check makes a watch with a large amount to read wait for the stream's turn.
func (s *Session) check(f *Follow) {
	if !s.Lease.Check(f.Sub) && s.Lease.Asks() && !s.hasMuch() {
		s.Lease.Release()
	}
	f.granted = s.Lease.Granted
}

// hasMuch reports whether a lease is still needed.
func (s *Session) hasMuch() bool {
	for i := range s.Follows {
		if limits.IsMuch(s.Follows[i].Sub) {
			return true
		}
	}
	return false
}

// Bookmarks writes the position in watches that were quiet for a heartbeat, or whose
// changes all lie outside the view.
func (s *Session) Bookmarks(now time.Time, out Encoder) bool {
	said := false
	for i := range s.Follows {
		f := &s.Follows[i]
		if s.Answer == nil && now.Sub(f.quietSince) >= s.Deps.Heartbeat && f.Sub.Bookmark(&s.Batch) {
			s.WriteBatch(f, out)
			said = true
		}
	}
	return said
}
