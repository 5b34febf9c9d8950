package streamtest

import (
	"fmt"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// windowMove is what the subscriber of a window goes through until it has the one to which it moves: it still has the
// former one, and what it is sent becomes visible together.
type windowMove struct {
	number uint64
	former State          // what the subscriber has
	begins bool           // it has received nothing, and has come with nothing
	whole  bool           // it has all of the former window, as the replica has it
	state  State          // what the subscriber has once it has what was sent so far
	came   []stream.Event // the upserts
	texts  []Version      // of them, when they came
	gone   []left
}

// left is a delete that a move brings.
type left struct {
	event      stream.Event
	head, upTo uint64 // of the replica around it
}

// CanMove reports whether the subscriber can move its window now.
func (c *Connection) CanMove() bool { return c.moving == nil && c.sub.CanMove() }

// Move ends the connection, and returns the one that its subscriber has from then on, to another window of the same
// view, whose history is h. It begins with the number of the move: until then the subscriber has the former window.
func (c *Connection) Move(h *History, to Subscriber, number uint64) *Connection {
	d := Dial{Client: c.Client, Replica: c.Replica, Slow: c.Slow, MinRate: c.MinRate, Interval: c.Interval, Mixed: c.Mixed}
	_, placed := c.sub.Position()
	if !placed { // it begins with the new window
		d.From, d.Begin = c.From, c.Begin
	}
	whole := c.sub.Synced() && c.sub.Progress().Lag() == 0
	next := h.newConnection(to, d)
	if next.moved = number; placed {
		next.moving = c.moveFrom(number, whole)
	}
	next.carry(c)
	next.sub = to.Subscribe(log.SubscribeOptions{Former: c.sub, Keep: true, Move: number})
	c.Close()
	h.Add(next)
	return next
}

// MoveRemote is Move for a subscriber beyond a network, once it has received what it has moved to. whole means that it
// had all of the former window as the replica has it.
func (c *Connection) MoveRemote(h *History, number uint64, whole bool) *Connection {
	next := h.Remote(c.source, Dial{Client: c.Client, Replica: c.Replica, Slow: c.Slow, Mixed: c.Mixed, OfView: c.OfView, Forgets: c.forgets})
	next.moved, next.behind = number, c.behind
	next.moving = c.moveFrom(number, whole)
	c.Close()
	return next
}

func (c *Connection) moveFrom(number uint64, whole bool) *windowMove {
	begins := c.From == nil && len(c.Marks()) == 0
	return &windowMove{begins: begins, number: number, former: c.state.Clone(), state: c.state.Clone(), whole: whole}
}

// carry repeats the status that the subscriber was told last, which it is not told again.
func (c *Connection) carry(from *Connection) {
	for _, f := range from.Flushes {
		for _, e := range f.Events {
			if e.Type == stream.StatusChange {
				c.Flushes = []Flush{{Order: c.history.nextOrder(), At: c.Opened, Head: f.Head, Horizon: f.Horizon, Events: []stream.Event{e}}}
			}
		}
	}
}

// Moving reports whether the subscriber has another window than the connection is to.
func (c *Connection) Moving() bool { return c.moving != nil }

// Difference reports whether the connection began with the difference of two windows.
func (c *Connection) Difference() bool { return c.difference }

// arrive looks for the end of a move in a flush. It replaces what belongs to it by a snapshot of what the subscriber
// has from then on, so that all that is true of a snapshot is checked.
func (c *Connection) arrive(f *Flush) {
	m, events := c.moving, f.Events
	f.Events = nil
	for i, e := range events {
		switch e.Type {
		case stream.StatusChange:
			f.Events = append(f.Events, e)
			continue
		case stream.Upsert:
			m.upsert(c, e)
			continue
		case stream.Delete:
			m.delete(c, f, e)
			continue
		case stream.Reset:
			m.reset(c, e)
			e.Reason = string(stream.ResetInitial) // it is the first one of its history
			f.Events = append(append(f.Events, e), events[i+1:]...)
		case stream.Bookmark:
			if e.Move != m.number {
				c.broke("%s in a move, want that of move %d", describe(e), m.number)
			}
			c.gone, c.difference, c.moved = m.gone, true, 0
			f.become(m, e, events[i+1:])
		default:
			c.broke("%s in the middle of a move", describe(e))
			continue
		}
		c.moving = nil
		return
	}
}

// reset checks a reset that comes in place of the difference.
func (m *windowMove) reset(c *Connection, e stream.Event) {
	switch stream.ResetReason(e.Reason) {
	case stream.ResetEpochChanged:
		return
	case stream.ResetExpired:
		if len(m.came)+len(m.gone) > 0 { // the state of which the difference was is gone
			return
		}
	case stream.ResetInitial:
		if m.begins {
			return
		}
	}
	c.broke("%s in place of the difference of move %d", describe(e), m.number)
}

// upsert checks an upsert of a move.
func (m *windowMove) upsert(c *Connection, e stream.Event) {
	v := versionOf(e.Resource)
	if held, has := m.state[e.Resource.Key]; has && held == v && m.whole {
		c.broke("%s of move %d, which the subscriber has", describe(e), m.number)
	}
	m.state[e.Resource.Key] = v
	m.came, m.texts = append(m.came, e), append(m.texts, v)
}

// delete checks a delete of a move.
func (m *windowMove) delete(c *Connection, f *Flush, e stream.Event) {
	key := e.Resource.Key
	if _, has := m.former[key]; !has && m.whole {
		c.broke("%s of move %d, which the subscriber has not", describe(e), m.number)
	}
	if len(m.came) > 0 && c.sub != nil {
		c.broke("%s of move %d after an upsert", describe(e), m.number)
	}
	delete(m.state, key)
	m.gone = append(m.gone, left{event: e, head: f.Head, upTo: f.after})
}

// become makes the flush a snapshot of what the subscriber has at the end of a move, and what followed.
func (f *Flush) become(m *windowMove, at stream.Event, rest []stream.Event) {
	begin := stream.Event{Type: stream.Reset, Watch: at.Watch, Reason: string(stream.ResetInitial)}
	f.Events, f.versions = append(f.Events, begin), nil
	for _, key := range sortedKeys(m.state) {
		e, v := stream.Event{Type: stream.Upsert, Watch: at.Watch, Resource: stream.Resource{Key: key, Revision: m.state[key].Revision}}, m.state[key]
		for i, came := range m.came {
			if came.Resource.Key == key {
				e, v = came, m.texts[i]
			}
		}
		f.versions = append(f.versions, make([]Version, len(f.Events)-len(f.versions))...)
		f.Events, f.versions = append(f.Events, e), append(f.versions, v)
	}
	at.Type, at.Count = stream.EndOfSnapshot, len(m.state)
	f.Events = append(append(f.Events, at), rest...)
	f.versions = append(f.versions, make([]Version, len(f.Events)-len(f.versions))...)
}

// checkMoved checks that the first event at which a subscriber has the window to which it has moved says so.
func (c *Connection) checkMoved(e *stream.Event) {
	if c.moved == 0 || e.Type != stream.EndOfSnapshot && (e.Type != stream.Bookmark || e.Move == 0) {
		return
	}
	if e.Move < c.moved {
		c.broke("%s after a move, want its number, %d", describe(*e), c.moved)
	}
	c.moved = 0
}

// leftView checks that what a move says to have left the window only is still in the view.
func (h *History) leftView(c *Connection) error {
	marks := c.Marks()
	if len(marks) == 0 {
		return nil // its order of revisions is not known
	}
	for _, l := range c.gone {
		s := step{event: &l.event, epoch: marks[0].Position.Epoch, flush: &Flush{Head: l.head, after: l.upTo}}
		if !l.event.Left {
			continue // it may be unknown
		}
		if err := h.hasLeft(&s); err != nil {
			return fmt.Errorf("%v: %s of a move: %w", c, describe(l.event), err)
		}
	}
	return nil
}
