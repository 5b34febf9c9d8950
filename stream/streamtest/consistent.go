package streamtest

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeConsistent = errors.New("broke Consistent: between reset and end_of_snapshot a subscriber receives exactly the state that the upstream had at the revision named by end_of_snapshot: no key missing, none extra, none twice, no older value")

// CheckConsistent checks each snapshot, and the state after each resume.
func CheckConsistent(h *History) error {
	return h.each(errBrokeConsistent, func(c *Connection) error {
		seen := map[string]bool{}
		return c.walk(func(s *step) error {
			if s.event == nil {
				return nil
			}
			switch s.event.Type {
			case stream.Reset:
				clear(seen)
			case stream.Upsert, stream.Delete:
				return inSnapshot(s, seen)
			case stream.EndOfSnapshot:
				return h.endOfSnapshot(c, s)
			}
			return nil
		})
	})
}

// inSnapshot checks a change between reset and end_of_snapshot.
func inSnapshot(s *step, seen map[string]bool) error {
	if s.phase != snapshot {
		return nil
	}
	key := s.event.Resource.Key
	if s.event.Type == stream.Delete {
		return fmt.Errorf("delete of %q inside of a snapshot", key)
	}
	if seen[key] {
		return fmt.Errorf("%q twice in a snapshot", key)
	}
	seen[key] = true
	return nil
}

// endOfSnapshot checks that the state is the one that it says. The count may be
// that of any state that the upstream had there.
func (h *History) endOfSnapshot(c *Connection, s *step) error {
	if s.phase != snapshot && s.phase != joining {
		return errors.New("end_of_snapshot without a snapshot or a resume")
	}
	if resumed := s.phase == joining; resumed != s.event.Resumed {
		return fmt.Errorf("resumed is %t, want %t", s.event.Resumed, resumed)
	}
	if diff := h.differs(c, s, s.event.Revision); diff != "" {
		return errors.New(diff)
	}
	for _, claimed := range h.claimed(c, s, s.event.Revision) {
		if claimed.counts(s.event.Count) {
			return nil
		}
	}
	if s.epoch == "" {
		return nil
	}
	return fmt.Errorf("count is %d, the subscriber holds %d", s.event.Count, len(s.before))
}
