package streamtest

import (
	"errors"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeAtomic = errors.New("broke Atomic: changes that the upstream made in one transaction become visible together: no id is sent between them, and no flush ends between them where the subscriber keeps up")

// CheckAtomic checks that a subscriber holds the upstream's state at each id, and at
// the end of each flush, outside of snapshots and catch-ups.
func CheckAtomic(h *History) error {
	return h.each(errBrokeAtomic, func(c *Connection) error {
		return c.walk(func(s *step) error {
			if s.mark != nil {
				return h.wholeAtID(c, s)
			}
			if s.last && s.flush.Mark == nil && !s.flush.Cut && !c.Slow && s.phase == live && isChange(s.event) {
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
		return nil
	}
	if diff := h.differs(c, s, p.Upserts); diff != "" {
		return errors.New(diff)
	}
	return nil
}

func isChange(e *stream.Event) bool { return e.Type == stream.Upsert || e.Type == stream.Delete }
