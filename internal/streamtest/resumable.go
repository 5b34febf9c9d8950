package streamtest

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeResumable = errors.New("broke Resumable: reconnecting with any id ever received, also in mid-snapshot or mid-catch-up, to this or to another replica, also to one that is behind, gives the same final state as never having disconnected: by the changes alone where the history reaches back, else by reset and a full snapshot. Never a silent gap")

// CheckResumable checks, for each connection that came with an id, that it got only
// the changes where the replica could, that a reset gives the true reason, and that
// the state is right once it has caught up.
func CheckResumable(h *History) error {
	given := h.given()
	return h.each(errBrokeResumable, func(c *Connection) error {
		return c.walk(func(s *step) error {
			if s.event == nil {
				return nil
			}
			switch s.event.Type {
			case stream.Reset:
				return h.justified(given, c, s)
			case stream.EndOfSnapshot:
				return h.caughtUp(c, s)
			}
			return nil
		})
	})
}

// caughtUp checks the state after a resume by changes alone.
func (h *History) caughtUp(c *Connection, s *step) error {
	if s.phase != joining {
		return nil
	}
	if from := c.From.Position; s.epoch != "" && from.Epoch != s.epoch {
		return fmt.Errorf("resumed in epoch %q from one of epoch %q without a reset", s.epoch, from.Epoch)
	}
	if s.event.Revision < c.From.Position.AsOf {
		return fmt.Errorf("caught up at revision %d, which is before the id", s.event.Revision)
	}
	if diff := h.differs(c, s, s.event.Revision); diff != "" {
		return fmt.Errorf("a silent gap: %s", diff)
	}
	return nil
}

// given is, for each replica, when it first issued the position of a plain id or
// the T of a partial one.
type given map[givenPlace]int

type givenPlace struct {
	replica, epoch string
	asOf           uint64
}

func (h *History) given() given {
	out := given{}
	for _, c := range h.Connections() {
		for _, f := range c.Flushes {
			if f.Mark == nil {
				continue
			}
			p := givenPlace{c.Replica, f.Mark.Position.Epoch, f.Mark.Position.AsOf}
			if at, ok := out[p]; !ok || f.Order < at {
				out[p] = f.Order
			}
		}
	}
	return out
}

// remembered reports whether the replica issued the id itself, and has history
// since.
func (g given) remembered(c *Connection, s *step) bool {
	from := c.From.Position
	at, ok := g[givenPlace{c.Replica, from.Epoch, from.AsOf}]
	return ok && at < s.flush.Order && from.AsOf >= s.flush.Horizon && s.epoch == from.Epoch
}

// justified checks the reason of the reset with which a connection began, if it
// did. The reason of a later reset does not concern the id.
func (h *History) justified(g given, c *Connection, s *step) error {
	if s.flush.Order != h.firstReset(c) {
		return nil
	}
	reason := stream.ResetReason(s.event.Reason)
	if c.From == nil {
		if reason != stream.ResetInitial {
			return fmt.Errorf("reason is %q, and there was no id", reason)
		}
		return nil
	}
	from := c.From.Position
	switch reason {
	case stream.ResetInitial, stream.ResetInvalidPosition:
		return fmt.Errorf("reason is %q, and there was a good id", reason)
	case stream.ResetEpochChanged:
		if s.epoch == from.Epoch {
			return fmt.Errorf("reason is %q, and it is the same", reason)
		}
	case stream.ResetAhead:
		if s.flush.Head >= from.AsOf && (s.epoch == "" || s.epoch == from.Epoch) {
			return fmt.Errorf("reason is %q, and the replica is at %d", reason, s.flush.Head)
		}
	case stream.ResetExpired:
		if g.remembered(c, s) && !h.DeletesUnnumbered {
			return fmt.Errorf("reason is %q, and the replica itself gave the id and remembers all since %d",
				reason, s.flush.Horizon)
		}
	}
	return nil
}

// firstReset is the order of the flush with the reset that the connection began with, or with
// which its catch-up ended; -1 if there was none. Where the memory of views is bounded, one
// after the first change is a later one.
func (h *History) firstReset(c *Connection) int {
	for _, f := range c.Flushes {
		for _, e := range f.Events {
			switch {
			case e.Type == stream.Reset:
				return f.Order
			case e.Type == stream.EndOfSnapshot, h.ViewsBounded && (e.Type == stream.Upsert || e.Type == stream.Delete):
				return -1
			}
		}
	}
	return -1
}
