package streamtest

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeAtomic = errors.New("broke Atomic: changes that the upstream made in one transaction become visible together: no id is sent between them, and no flush ends between them where the subscriber keeps up")

// CheckAtomic checks that a subscriber holds the upstream's state at each id and, outside of
// snapshots and catch-ups, at the end of each flush. A partial id is only part of a state.
func CheckAtomic(h *History) error {
	return h.each(errBrokeAtomic, func(c *Connection) error {
		return c.walk(func(s *step) error {
			if s.mark != nil {
				return h.wholeAtID(c, s)
			}
			if s.last && s.flush.Mark == nil && !s.flush.Cut && !c.Slow && c.Interval == 0 && s.flush.bytes < h.large() && s.phase == live && isChange(s.event) {
				return errors.New("a flush ends here, and no id was sent")
			}
			return nil
		})
	})
}

func (h *History) wholeAtID(c *Connection, s *step) error {
	p := s.mark.Position
	if p.Partial() {
		if s.phase == live {
			return errors.New("a partial id outside of a snapshot or a catch-up")
		}
		return h.partAtID(c, s)
	}
	if diff := h.differs(c, s, p.Upserts); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// partAtID checks that a subscriber holds, at a partial id, the part of the state that the id
// covers: every upsert up to the one revision, and nothing that was deleted up to the other. At which revision a
// resource came into a window because of a delete without a revision is not known, nor at which a group has changed.
func (h *History) partAtID(c *Connection, s *step) error {
	p := s.mark.Position
	err := fmt.Errorf("the upstream never was at revision %d of epoch %q", p.AsOf, p.Epoch)
	for _, claimed := range h.claimed(c, s, p.AsOf) {
		want, diff := h.wanted(s, claimed, p.AsOf), ""
		for _, key := range sortedKeys(s.before, want) {
			held, wanted := s.before[key], want[key]
			switch {
			case wanted.Revision == 0 && claimed.either[key].Revision <= p.Upserts:
				diff = fmt.Sprintf("%q is extra (revision %d)", key, held.Revision)
			case wanted.Revision > 0 && claimed.enteredAt(key, wanted) <= p.Upserts && held != wanted && !(h.Window && h.DeletesUnnumbered) && !h.Groups:
				diff = fmt.Sprintf("%q is %s of revision %d, want %s of revision %d", key, held.Value, held.Revision, wanted.Value, wanted.Revision)
			}
		}
		if diff == "" {
			return nil
		}
		err = fmt.Errorf("not the part of the state at revision %d of epoch %q up to %d: %s", p.AsOf, p.Epoch, p.Upserts, diff)
	}
	return err
}

// large is the number of bytes from which a transaction may take several flushes.
func (h *History) large() int { return cmp.Or(h.Large, 1<<20) }

func isChange(e *stream.Event) bool { return e.Type == stream.Upsert || e.Type == stream.Delete }
