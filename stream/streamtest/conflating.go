package streamtest

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeConflating = errors.New("broke Conflating: a subscriber that is slower than the upstream gets the newest value of each key and may miss values in between; it never blocks another subscriber or the upstream, and never costs memory in proportion to its lag")

// CheckConflating checks each catch-up: no key twice, unless it continued with a newer
// state, the newest value of each at its end, and the correct count of skipped changes.
// A history cannot show that no reader blocks and no memory is held; tests must check
// that.
func CheckConflating(h *History) error {
	return h.each(errBrokeConflating, func(c *Connection) error {
		u := catchUp{history: h, connection: c}
		return c.walk(u.check)
	})
}

// catchUp is the catch-up under way.
type catchUp struct {
	history    *History
	connection *Connection
	begun      bool
	seen       sent
	from       uint64 // the revision up to which the subscriber had everything
}

func (u *catchUp) check(s *step) error {
	if s.event == nil {
		if !u.begun && !s.mark.Position.Partial() {
			u.from = s.mark.Position.Upserts
		}
		return nil
	}
	switch s.event.Type {
	case stream.StatusChange:
		u.begun = s.phase == catchingUp
		if !s.renewed {
			u.seen = sent{}
		}
	case stream.Reset:
		u.begun = false
	case stream.Upsert, stream.Delete:
		if u.begun {
			return u.seen.once(s, "a catch-up")
		}
	case stream.EndOfSnapshot:
		u.from = s.event.Revision // its id may be further on, after a catch-up
	case stream.Bookmark:
		defer func() { u.begun, u.from = false, s.event.Revision }()
		return u.end(s)
	}
	return nil
}

func (u *catchUp) end(s *step) error {
	if s.phase != catchingUp && s.phase != lagging {
		if s.event.Skipped > 0 {
			return errors.New("something was skipped without a status catching_up before")
		}
		return nil
	}
	if diff := u.history.differs(u.connection, s, s.event.Revision); diff != "" {
		return errors.New(diff)
	}
	if most := u.most(s); s.epoch != "" && s.event.Skipped > uint64(most) {
		return fmt.Errorf("%d changes were skipped, and there were only %d since %d", s.event.Skipped, most, u.from)
	}
	return nil
}

// most is how many changes can have been skipped. A view that hides nothing may have deletes
// of resources that it did not have.
func (u *catchUp) most(s *step) int {
	h, upTo := u.history, s.event.Revision
	n := h.Truth.Changes(s.epoch, u.from, upTo)
	if !h.Hides {
		n += h.Truth.unseenChanges(s.epoch, u.from, upTo, h.DeletesUnnumbered, u.connection.OfView)
	}
	return n
}
