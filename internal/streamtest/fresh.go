package streamtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeFresh = errors.New("broke Fresh: a subscriber can always tell in_sync from stale, within one heartbeat")

// CheckFresh compares, at every moment, the freshness that a subscriber that reads
// at once assumes of its watch with the true one of one heartbeat before.
func CheckFresh(h *History) error {
	return h.each(errBrokeFresh, func(c *Connection) error {
		freshness, ok := h.Freshness[c.Replica]
		if !ok || c.Slow {
			return nil
		}
		if err := sinceIsTrue(c, freshness); err != nil {
			return err
		}
		for _, p := range h.periods(freshness, c) {
			if err := c.believes(p); err != nil {
				return fmt.Errorf("%v: %w", c, err)
			}
		}
		return nil
	})
}

// period is a stretch of time in which a subscriber has to have the right
// freshness of its watch.
type period struct {
	from, to time.Time // to is zero: until the end
	fresh    bool
}

// periods divides the life of a connection by the freshness of the upstream. The
// allowances are deducted at the start of each.
func (h *History) periods(freshness []Freshness, c *Connection) []period {
	var out []period
	now := Freshness{}
	for i := 0; i <= len(freshness); i++ {
		p := period{fresh: now.Fresh, to: c.Closed}
		p.from = later(now.At, c.Opened).Add(h.Heartbeat)
		if !now.Fresh {
			p.from = later(now.At.Add(h.StaleAfter), c.Opened).Add(h.Heartbeat)
		}
		if i < len(freshness) {
			now = freshness[i]
			p.to = earlier(now.At, c.Closed)
		}
		if p.to.IsZero() || p.from.Before(p.to) {
			out = append(out, p)
		}
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier takes a zero b for never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// believes checks the status of the subscriber at the start of a period, and each
// status within it. A status that is revoked at the same moment, as catching_up for
// a reader that catches up at once, does not count; nor does a status that is not in_sync
// for one that took time to find out what differs, and read nothing meanwhile.
func (c *Connection) believes(p period) error {
	if !c.Read.After(p.from) {
		return nil // the subscriber no longer read
	}
	told := stream.Event{State: stream.InSync} // unless told otherwise
	var last time.Time
	for _, f := range c.Flushes {
		if !p.to.IsZero() && !f.At.Before(p.to) {
			break
		}
		if f.At.After(p.from) && f.At.After(last) {
			if err := p.check(c, told); err != nil {
				return err
			}
		}
		last = f.At
		for _, e := range f.Events {
			if e.Type == stream.StatusChange {
				told = e
			}
		}
	}
	return p.check(c, told)
}

func (p period) check(c *Connection, told stream.Event) error {
	if told.State != stream.InSync && c.repaired {
		return nil
	}
	if fresh := told.State == stream.InSync; fresh != p.fresh {
		is := map[bool]string{true: "fresh", false: "not fresh"}[p.fresh]
		return fmt.Errorf("at %s the upstream is %s, and the subscriber has the status %v (%s)",
			p.from.UTC().Format("15:04:05.000"), is, told.State, told.Reason)
	}
	return nil
}

// sinceIsTrue checks that a status that is not in_sync does not make the watch
// look fresher than it was: it may not name a moment after the loss.
func sinceIsTrue(c *Connection, freshness []Freshness) error {
	for _, f := range c.Flushes {
		lost := lostBefore(freshness, f.At)
		for _, e := range f.Events {
			if e.Type != stream.StatusChange || e.State != stream.Stale || lost.IsZero() {
				continue
			}
			if e.Since.After(lost) {
				return fmt.Errorf("%v: stale since %v, and the upstream was lost at %v", c, e.Since, lost)
			}
		}
	}
	return nil
}

// lostBefore returns when freshness was last lost before a moment.
func lostBefore(freshness []Freshness, at time.Time) time.Time {
	var lost time.Time
	for _, f := range freshness {
		if !f.Fresh && !f.At.After(at) {
			lost = f.At
		}
	}
	return lost
}
