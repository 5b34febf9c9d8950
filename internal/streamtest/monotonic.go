package streamtest

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeMonotonic = errors.New("broke Monotonic: after an upstream fail-over to a replica that is behind, the gateway waits or says stale; it does not go back in time, except by an explicit reset")

// CheckMonotonic checks that revisions of ids, bookmarks and end_of_snapshot, and those that the
// subscriber names, never fall, from the id that a connection came with to its end, except by
// reset.
func CheckMonotonic(h *History) error {
	return h.each(errBrokeMonotonic, func(c *Connection) error {
		m := monotony{}
		if c.From != nil {
			m = monotony{epoch: c.From.Position.Epoch, asOf: c.From.Position.AsOf, named: c.From.Revision}
		}
		return c.walk(m.check)
	})
}

// monotony is how far a subscriber has come.
type monotony struct {
	epoch string
	asOf  uint64
	named uint64 // by the subscriber; 0: none
}

func (m *monotony) check(s *step) error {
	if s.event != nil && s.event.Type == stream.Reset {
		*m = monotony{}
		return nil
	}
	revision := uint64(0)
	switch {
	case s.mark != nil:
		revision = s.mark.Position.AsOf
		if named := s.mark.Revision; named > 0 && named < m.named {
			return fmt.Errorf("the subscriber names revision %d after %d", named, m.named)
		}
		m.named = max(m.named, s.mark.Revision)
	case s.event.Type == stream.Bookmark || s.event.Type == stream.EndOfSnapshot:
		revision = s.event.Revision
	default:
		return nil
	}
	if m.epoch != "" && s.epoch != "" && s.epoch != m.epoch {
		return fmt.Errorf("epoch %q became %q without a reset", m.epoch, s.epoch)
	}
	if revision < m.asOf {
		return fmt.Errorf("revision %d after %d", revision, m.asOf)
	}
	if s.epoch != "" {
		m.epoch = s.epoch
	}
	m.asOf = revision
	return nil
}
