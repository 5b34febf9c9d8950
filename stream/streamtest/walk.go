package streamtest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

// phase is where in a connection an event stands.
type phase uint8

const (
	// joining: the connection resumed, and has not caught up yet.
	joining phase = iota
	// snapshot: between reset and end_of_snapshot.
	snapshot
	// live: after end_of_snapshot.
	live
	// catchingUp: between the status of that name and the bookmark.
	catchingUp
	// lagging: after that bookmark, until a status says what now. Live changes
	// may follow, or another catch-up.
	lagging
)

// step is one event of a connection, or one id, and what is known there.
type step struct {
	flush *Flush
	index int           // of the event in its flush
	event *stream.Event // nil: an id
	mark  *Mark         // set for an id
	last  bool          // the last event of its flush

	// epoch is the revision order that the event belongs to; "" where the
	// connection ended before an id told.
	epoch string
	// phase is the one that the event is part of; for an event that begins or
	// ends a phase, the phase that it begins or ends.
	phase phase
	// before is what the subscriber held before the event. Not to be kept.
	before State
	// early are the keys of which the subscriber had something after its id.
	early map[string]bool
}

// version is what an upsert brought.
func (s *step) version() Version { return s.flush.version(s.index) }

// walk calls f for each event and id of a connection in order, until f returns
// an error, and says where that was.
func (c *Connection) walk(f func(*step) error) error {
	w := walker{connection: c, state: c.Begin.Clone(), phase: c.firstPhase(), early: c.early()}
	for i := range c.Flushes {
		flush := &c.Flushes[i]
		for j := range flush.Events {
			s := step{flush: flush, index: j, event: &flush.Events[j], last: j == len(flush.Events)-1, epoch: w.epochAt(i)}
			if err := w.event(&s, f); err != nil {
				return fmt.Errorf("%v: flush %d, event %d %s: %w", c, flush.Order, j, describe(*s.event), err)
			}
		}
		if flush.Mark == nil {
			continue
		}
		s := step{flush: flush, mark: flush.Mark, epoch: flush.Mark.Position.Epoch, phase: w.phase, before: w.state, early: w.early}
		if err := f(&s); err != nil {
			return fmt.Errorf("%v: flush %d, id %v: %w", c, flush.Order, flush.Mark.Position, err)
		}
	}
	return nil
}

func (c *Connection) firstPhase() phase {
	if c.From == nil {
		return snapshot
	}
	return joining
}

// walker is a walk under way.
type walker struct {
	connection *Connection
	state      State
	phase      phase
	early      map[string]bool
}

// early are the keys of which the subscriber holds another version than the one
// at its id.
func (c *Connection) early() map[string]bool {
	out := map[string]bool{}
	if c.From == nil {
		return out
	}
	maps.Copy(out, c.From.early)
	for _, key := range sortedKeys(c.Begin, c.From.State) {
		if c.Begin[key] != c.From.State[key] {
			out[key] = true
		}
	}
	return out
}

func (w *walker) event(s *step, f func(*step) error) error {
	w.phase = nextPhase(w.phase, s.event)
	if s.event.Type == stream.Reset {
		w.early = nil
	}
	s.phase, s.before, s.early = w.phase, w.state, w.early
	err := f(s)
	s.flush.apply(w.state, s.index)
	switch {
	case s.event.Type == stream.EndOfSnapshot:
		w.phase = live
	case s.event.Type == stream.Bookmark && w.phase == catchingUp:
		w.phase = lagging
	}
	return err
}

func nextPhase(p phase, e *stream.Event) phase {
	switch {
	case e.Type == stream.Reset:
		return snapshot
	case e.Type != stream.StatusChange:
		return p
	case e.State == stream.CatchingUp && p == live:
		return catchingUp
	case e.State != stream.CatchingUp && (p == catchingUp || p == lagging):
		return live
	}
	return p
}

// epochAt is the epoch of what is in flush i: that of the next id, since a new
// epoch begins with a reset, and an id follows. Where the connection ended before
// that, it is the epoch from before, unless there was a reset.
func (w *walker) epochAt(i int) string {
	flushes := w.connection.Flushes
	for _, f := range flushes[i:] {
		switch {
		case f.Mark != nil:
			return f.Mark.Position.Epoch
		case slices.ContainsFunc(f.Events, func(e stream.Event) bool { return e.Type == stream.Reset }):
			return ""
		}
	}
	for _, f := range slices.Backward(flushes[:i]) {
		if f.Mark != nil {
			return f.Mark.Position.Epoch
		}
	}
	if from := w.connection.From; from != nil {
		return from.Position.Epoch
	}
	return ""
}

// each runs a check of one connection on all of them, and returns the first
// breach under the name of the guarantee.
func (h *History) each(guarantee error, check func(*Connection) error) error {
	for _, c := range h.Connections() {
		if err := check(c); err != nil {
			return fmt.Errorf("%w\n\t%w", guarantee, err)
		}
	}
	return nil
}

// differs says how what the subscriber holds differs from what the upstream was
// at a revision; empty if it does not, or if the epoch is unknown.
func (h *History) differs(c *Connection, s *step, revision uint64) string {
	if s.epoch == "" || h.unnumberedMix(c, revision) {
		return ""
	}
	diff := fmt.Sprintf("the upstream never was at revision %d of epoch %q", revision, s.epoch)
	for _, want := range h.Truth.At(s.epoch, revision) {
		unlike := s.comparable(c, s.before, revision).Diff(s.comparable(c, want.Narrow(c.Prefix), revision))
		if unlike == "" {
			return ""
		}
		diff = fmt.Sprintf("not the state at revision %d of epoch %q: %s", revision, s.epoch, unlike)
	}
	return diff
}

// comparable is a state without what came after the id, as long as the replica
// may not be there yet.
func (s *step) comparable(c *Connection, state State, revision uint64) State {
	if len(s.early) == 0 || revision >= c.Ahead {
		return state
	}
	out := state.Clone()
	for key := range s.early {
		delete(out, key)
	}
	return out
}

// unnumberedMix says that a connection went on in the middle of a snapshot or a
// catch-up as of a revision that several states share, since deletes have none of
// their own. If the replica is behind within that revision, nobody can tell: the
// subscriber holds a mix of two of the states until the deletes have come.
func (h *History) unnumberedMix(c *Connection, revision uint64) bool {
	return h.DeletesUnnumbered && c.From != nil && c.From.Position.Partial() && c.From.Position.AsOf == revision
}
