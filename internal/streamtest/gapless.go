package streamtest

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/stream"
)

var errBrokeGapless = errors.New("broke Gapless: after end_of_snapshot no change is lost. For every key the newest value is delivered")

// CheckGapless compares the state of a subscriber with the upstream's: wherever an
// event implies that it is complete up to a revision, and at the end.
func CheckGapless(h *History) error {
	return h.each(errBrokeGapless, func(c *Connection) error {
		if err := c.walk(func(s *step) error { return h.nothingLost(c, s) }); err != nil {
			return err
		}
		return h.finalState(c)
	})
}

func (h *History) nothingLost(c *Connection, s *step) error {
	revision := uint64(0)
	switch {
	case s.mark != nil && s.phase == live && !s.mark.Position.Partial():
		revision = s.mark.Position.Upserts
	case s.event != nil && s.event.Type == stream.Bookmark && s.phase == joining:
		return nil // it repeats the position that the subscriber came with
	case s.event != nil && (s.event.Type == stream.Bookmark || s.event.Type == stream.EndOfSnapshot):
		revision = s.event.Revision
	default:
		return nil
	}
	if diff := h.lost(c, s, revision); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// lost names a key whose newest value, or whose deletion, has not been delivered:
// every difference, except for versions newer than the revision.
func (h *History) lost(c *Connection, s *step, revision uint64) string {
	if s.epoch == "" {
		return ""
	}
	lost := fmt.Sprintf("the upstream never was at revision %d of epoch %q", revision, s.epoch)
	for _, claimed := range h.claimed(c, s, revision) {
		want := h.wanted(s, claimed, revision)
		diff := s.before.asOf(revision, want).Diff(want)
		if diff == "" {
			return ""
		}
		lost = fmt.Sprintf("something up to revision %d of epoch %q was lost: %s", revision, s.epoch, diff)
	}
	return lost
}

// asOf returns the state with its keys newer than a revision as in other.
func (s State) asOf(revision uint64, other State) State {
	out := make(State, len(s))
	for key, v := range s {
		if v.Revision > revision {
			v = other[key]
		}
		if v.Revision > 0 {
			out[key] = v
		}
	}
	return out
}

// finalState compares at the end, where everything has been read.
func (h *History) finalState(c *Connection) error {
	if !h.Settled || !c.Closed.IsZero() {
		return nil
	}
	w := newWalker(c)
	last := step{epoch: w.epochAt(len(c.Flushes)), flush: &Flush{}}
	nothing := func(*step) error { return nil }
	var told *stream.Event // what it says of a window
	for i := range c.Flushes {
		flush := &c.Flushes[i]
		for j := range flush.Events {
			if _ = w.event(&step{flush: flush, index: j, event: &flush.Events[j]}, nothing); flush.Events[j].Window {
				told = &flush.Events[j]
			}
		}
		if flush.Mark != nil {
			_ = w.id(flush, nothing)
		}
	}
	last.before, last.lead = w.state, w.lead
	_, newest := h.Truth.Newest()
	want := claimed{state: newest.After}
	if diff := w.state.Diff(h.wanted(&last, want, newest.Revision)); diff != "" {
		return fmt.Errorf("%v: at the end not the upstream's state: %s", c, diff)
	}
	if about := newest.window; about != nil && told != nil && (told.Total != about.total || told.Before != about.before) {
		return fmt.Errorf("%v: at the end the window is told of with %d after %d, want %d after %d", c, told.Total, told.Before, about.total, about.before)
	}
	return nil
}
