package streamtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeConflating = errors.New("broke Conflating: a subscriber that is slower than the upstream gets the newest value of each key and may miss values in between; it never blocks another subscriber or the upstream, and never costs memory in proportion to its lag")

// CheckConflating checks each catch-up: no key twice, unless it continued with a newer
// state, the newest value of each at its end, and the correct count of skipped changes. A
// subscriber below its minimum rate must not keep the state that it is sent.
// A history cannot show that no reader blocks and no memory is held; tests must check
// that.
func CheckConflating(h *History) error {
	return h.each(errBrokeConflating, func(c *Connection) error {
		if err := c.givesUp(); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
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
		if !u.begun {
			u.seen = sent{}
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
		switch {
		case u.begun:
			return u.seen.once(s, "a catch-up")
		case u.connection.Interval > 0 && s.phase == live:
			return u.seen.once(s, "a release")
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
	if s.phase != catchingUp && s.phase != lagging && u.connection.Interval == 0 {
		if s.event.Skipped > 0 {
			return errors.New("something was skipped without a status catching_up before")
		}
		return nil
	}
	if s.event.Skipped == 0 && s.phase != catchingUp {
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

// paceWindow is the time over which the rate of a subscriber is measured, and paceSlack how much
// later it may be noticed.
const (
	paceWindow = 30 * time.Second
	paceSlack  = 15 * time.Second
)

// givesUp checks that a subscriber below its minimum rate goes on with a newer state. Inside a
// snapshot or a catch-up, an id names the state that it is sent.
func (c *Connection) givesUp() error {
	if c.MinRate <= 0 {
		return nil
	}
	var of stream.Position // the state that it is sent; AsOf 0: none
	var since time.Time
	sent := 0
	for _, f := range c.Flushes {
		if f.Mark == nil || !f.Mark.Position.Partial() {
			of = stream.Position{}
			continue
		}
		p := f.Mark.Position
		if p.Epoch != of.Epoch || p.AsOf != of.AsOf {
			of, since, sent = p, f.At, f.bytes
			continue
		}
		allowed := paceWindow + paceSlack + time.Duration(float64(sent)/float64(c.MinRate)*float64(time.Second))
		if newer := c.newerSince(p.AsOf); !newer.IsZero() && f.At.After(later(since, newer).Add(allowed)) {
			return fmt.Errorf("flush %d, id %v: the subscriber took %d bytes in %v, and keeps the state at revision %d",
				f.Order, p, sent, f.At.Sub(since), p.AsOf)
		}
		sent += f.bytes
	}
	return nil
}

// newerSince returns since when the replica had something newer than a revision; zero: that is
// not known. What it had before it was at that revision last is not newer: its upstream went back.
func (c *Connection) newerSince(revision uint64) (at time.Time) {
	for _, h := range slices.Backward(c.heads) {
		if h.revision <= revision {
			break
		}
		at = h.at
	}
	return at
}
