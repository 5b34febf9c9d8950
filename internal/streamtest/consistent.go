package streamtest

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeConsistent = errors.New("broke Consistent: between reset and end_of_snapshot a subscriber receives exactly the state that the upstream had at the revision named by end_of_snapshot: no key missing, none extra, no older value, and none twice unless a status (catching_up) stands between; then the second is newer")

// CheckConsistent checks each snapshot, each window after a move, the state after each resume, and the state wherever the
// subscriber says that it is one of the upstream's.
func CheckConsistent(h *History) error {
	return h.each(errBrokeConsistent, func(c *Connection) error {
		seen := sent{}
		if err := h.leftView(c); err != nil {
			return err
		}
		return c.walk(func(s *step) error {
			if s.event == nil {
				return h.saidConsistent(c, s)
			}
			switch s.event.Type {
			case stream.Reset:
				clear(seen)
			case stream.Upsert, stream.Delete:
				return cmp.Or(seen.inSnapshot(s), h.saysWhy(c, s))
			case stream.EndOfSnapshot:
				return cmp.Or(h.endOfSnapshot(c, s), h.saysTrue(c, s))
			case stream.Bookmark:
				return h.saysTrue(c, s)
			}
			return nil
		})
	})
}

// sent are the keys of a snapshot or a catch-up so far, each with the revision of
// its last upsert; 0 for one that was deleted.
type sent map[string]uint64

// inSnapshot checks a change between reset and end_of_snapshot.
func (seen sent) inSnapshot(s *step) error {
	if s.phase != snapshot {
		return nil
	}
	if s.event.Type == stream.Delete && !s.renewed {
		return fmt.Errorf("delete of %q inside of a snapshot", s.event.Resource.Key)
	}
	return seen.once(s, "a snapshot")
}

// once checks that a key is sent once, or again with a newer value after the
// walk continued with a newer state. In a window it may have the same.
func (seen sent) once(s *step, in string) error {
	key, revision := s.event.Resource.Key, uint64(0)
	if s.event.Type == stream.Upsert {
		revision = s.event.Resource.Revision
	}
	before, again := seen[key]
	if again && (!s.renewed || revision > 0 && (revision < before || revision == before && !s.window)) {
		return fmt.Errorf("%q twice in %s", key, in)
	}
	seen[key] = revision
	return nil
}

// counted is the revision up to which the replica has all deletes at the end of a
// snapshot. The id from before a resume, which another replica may have issued, does
// not determine it.
func (s *step) counted() uint64 {
	if s.event.Resumed && (s.flush.Mark == nil || s.changesFollow()) {
		return 0
	}
	return s.deletesTo(s.event.Revision)
}

// endOfSnapshot checks that the state is the claimed one. The count may be that of
// any state that the upstream had there.
func (h *History) endOfSnapshot(c *Connection, s *step) error {
	if s.phase != snapshot && s.phase != joining {
		return errors.New("end_of_snapshot without a snapshot or a resume")
	}
	if resumed := s.phase == joining || s.renewed; resumed != s.event.Resumed {
		return fmt.Errorf("resumed is %t, want %t", s.event.Resumed, resumed)
	}
	if diff := h.differs(c, s, s.event.Revision); diff != "" {
		return errors.New(diff)
	}
	for _, claimed := range h.claimedAt(c, s, s.event.Revision, s.counted()) {
		if claimed.counts(s.event.Count) {
			return nil
		}
	}
	if s.epoch == "" {
		return nil
	}
	return fmt.Errorf("count is %d, the subscriber holds %d", s.event.Count, len(s.before))
}

// saidConsistent checks what the subscriber says at an id.
func (h *History) saidConsistent(c *Connection, s *step) error {
	p := s.mark.Position
	switch {
	case !s.mark.Consistent:
		return nil
	case p.Partial():
		return errors.New("the subscriber says that it has a state of the upstream, in the middle of one")
	}
	if diff := h.differs(c, s, p.AsOf); diff != "" {
		return fmt.Errorf("the subscriber says that it has a state of the upstream: %s", diff)
	}
	return nil
}
