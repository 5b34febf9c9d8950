package streamtest

import (
	"fmt"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

// phase is the part of a connection that an event is in.
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
	// lagging: after that bookmark, until the next status. Live changes may
	// follow, or another catch-up.
	lagging
)

// step is one event or one id of a connection, and the knowledge there.
type step struct {
	flush *Flush
	index int           // of the event in its flush
	event *stream.Event // nil: an id
	mark  *Mark         // set for an id
	last  bool          // the last event of its flush

	// epoch is the revision order that the event belongs to; "" if the connection
	// ended before an id showed it.
	epoch string
	// phase is the one that the event is part of; for an event that begins or
	// ends a phase, the phase that it begins or ends.
	phase phase
	// before is the subscriber's state before the event. It must not be kept.
	before State
	// lead has the subscriber's changes beyond its id.
	lead lead
	// asOf is the position of the replica when it made the phase of the event: where
	// a snapshot, a resume or a catch-up began, otherwise the subscriber's last known
	// one.
	asOf uint64
	// seen is the last id, or the one that the connection came with, that is not
	// partial; nil: none since the last reset.
	seen *stream.Position
	// renewed means that the snapshot, the resume or the catch-up was too slow for
	// the state that it began with, and continued with a newer one: it contained a
	// status (catching_up).
	renewed bool
	// window means that the connection is to a window.
	window bool
}

// version is the version of an upsert.
func (s *step) version() Version { return s.flush.version(s.index) }

// walk calls f for each event and id of a connection in order, until f returns an
// error, to which it adds where that was.
func (c *Connection) walk(f func(*step) error) error {
	w := newWalker(c)
	for i := range c.Flushes {
		flush := &c.Flushes[i]
		for j := range flush.Events {
			s := step{flush: flush, index: j, event: &flush.Events[j], last: j == len(flush.Events)-1, epoch: w.epochAt(i), window: c.window}
			if err := w.event(&s, f); err != nil {
				return fmt.Errorf("%v: flush %d, event %d %s: %w", c, flush.Order, j, describe(*s.event), err)
			}
		}
		if flush.Mark == nil {
			continue
		}
		if err := w.id(flush, f); err != nil {
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
	lead       lead
	asOf       uint64
	seen       *stream.Position
	renewed    bool
	changed    bool // there was a change
}

func newWalker(c *Connection) *walker {
	w := &walker{connection: c, state: c.Begin.Clone(), phase: c.firstPhase(), lead: c.firstLead()}
	if c.From != nil {
		w.seen = &c.From.Position
	}
	return w
}

// firstLead has the changes beyond its id that the subscriber came with.
func (c *Connection) firstLead() lead { return leadOf(c.From, c.Begin, c.Ahead) }

func (w *walker) event(s *step, f func(*step) error) error {
	before := w.phase
	renews := s.event.Type == stream.StatusChange && s.event.State == stream.CatchingUp && before != live && before != lagging
	w.phase = nextPhase(w.phase, s.event)
	begins := s.event.Type == stream.StatusChange && w.phase == catchingUp
	w.renewed = w.renewed || renews
	joins := before == joining && w.asOf == 0 && s.event.Type != stream.StatusChange
	switch {
	case s.event.Type == stream.Reset:
		w.lead, w.seen, w.asOf, w.renewed = nil, nil, s.flush.Head, false
	case begins, renews, joins:
		w.asOf = s.flush.Head
	}
	w.lead = w.lead.told(s.event, joins)
	s.phase, s.before, s.lead, s.asOf, s.seen, s.renewed = w.phase, w.state, w.lead, w.asOf, w.seen, w.renewed
	err := f(s)
	s.flush.apply(w.state, s.index)
	w.changed = w.changed || isChange(s.event)
	w.lead = w.lead.after(s.event, joins)
	if s.event.Type == stream.EndOfSnapshot || s.event.Type == stream.Bookmark {
		w.renewed = false
	}
	switch {
	case s.event.Type == stream.EndOfSnapshot:
		w.phase, w.asOf = live, s.event.Revision
	case s.event.Type == stream.Bookmark:
		w.asOf = s.event.Revision
		if w.phase == catchingUp {
			w.phase = lagging
		}
	}
	return err
}

// id lets f look at an id.
func (w *walker) id(flush *Flush, f func(*step) error) error {
	p := &flush.Mark.Position
	if w.phase == joining && !w.changed && w.connection.repeats(*p) {
		w.seen = p // it does not concern this replica yet
		return nil
	}
	if !p.Partial() {
		w.lead = w.lead.passed(p.AsOf)
		if w.phase == live {
			w.asOf = p.AsOf
		}
	}
	s := step{
		flush: flush, mark: flush.Mark, epoch: p.Epoch, phase: w.phase,
		before: w.state, lead: w.lead, asOf: w.asOf, seen: w.seen,
	}
	err := f(&s)
	if !p.Partial() {
		w.seen = p
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

// epochAt is the epoch of the events in flush i: that of the next id, since a new
// epoch begins with a reset, and an id follows. If the connection ended before that,
// or before a reset, it is the previous epoch, unless there was a reset in the flush.
func (w *walker) epochAt(i int) string {
	flushes := w.connection.Flushes
	for j, f := range flushes[i:] {
		resets := slices.ContainsFunc(f.Events, isReset)
		if j > 0 && resets {
			break // another epoch may begin
		}
		switch {
		case f.Mark != nil:
			return f.Mark.Position.Epoch
		case resets:
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

// differs describes how the subscriber's state differs from the upstream's at a
// revision; empty if it does not, or if the epoch is unknown.
func (h *History) differs(c *Connection, s *step, revision uint64) string {
	if s.epoch == "" {
		return ""
	}
	diff := fmt.Sprintf("the upstream never was at revision %d of epoch %q", revision, s.epoch)
	for _, claimed := range h.claimed(c, s, revision) {
		unlike := s.before.Diff(h.wanted(s, claimed, revision))
		if unlike == "" {
			return ""
		}
		diff = fmt.Sprintf("not the state at revision %d of epoch %q: %s", revision, s.epoch, unlike)
	}
	return diff
}

// claimed returns every state that the subscriber may hold at a revision.
func (h *History) claimed(c *Connection, s *step, revision uint64) []claimed {
	return h.claimedAt(c, s, revision, s.deletesTo(revision))
}

// claimedAt is claimed for a known revision up to which deletes are complete.
func (h *History) claimedAt(c *Connection, s *step, revision, deletesTo uint64) []claimed {
	return h.Truth.claimed(claim{epoch: s.epoch, revision: revision, deletesTo: deletesTo, mixed: c.mixed()})
}

// wanted is a claimed state, with its open keys, and those beyond the id, as the
// subscriber holds them.
func (h *History) wanted(s *step, c claimed, revision uint64) State {
	want, copied := c.toward(s.before), false
	for key := range s.lead {
		held, ok := s.before[key]
		if held == want[key] || !s.lead.allows(key, held, revision, h.Truth.Versions(s.epoch, key)) {
			continue
		}
		if !copied {
			want, copied = want.Clone(), true
		}
		if delete(want, key); ok {
			want[key] = held
		}
	}
	return want
}

// deletesTo is the revision up to which unordered deletes are complete, according to the
// id on the event, or the previous one if changes come in between; 0 if there is
// none for the revision.
func (s *step) deletesTo(revision uint64) uint64 {
	id := s.seen
	if m := s.flush.Mark; m != nil && !s.changesFollow() {
		id = &m.Position
	}
	if id == nil || id.Partial() || id.AsOf != revision {
		return 0
	}
	return id.DeletesCompleteTo()
}

// changesFollow reports whether there are changes between an event and the id of its
// flush.
func (s *step) changesFollow() bool {
	if s.event == nil {
		return false
	}
	return slices.ContainsFunc(s.flush.Events[s.index+1:], func(e stream.Event) bool { return isChange(&e) })
}

// mixed reports whether a subscriber's state may have been made at two replicas.
func (c *Connection) mixed() bool {
	return c.Mixed || c.From != nil && c.From.Position.Partial()
}
