package streamtest

import (
	"math"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Received is what a subscriber beyond a network has received up to an id, or up to the end of
// its connection.
type Received struct {
	// At is when the last of it came.
	At     time.Time
	Events []stream.Event
	// Position is that of the id; nil: there was none. Then the connection has ended, unless More
	// is set.
	Position *stream.Position
	More     bool
	// Consistent means that the client says, at the id, that it has exactly a state that the
	// upstream had. Revision is the one that it names; 0: none.
	Consistent bool
	Revision   uint64
}

// Remote is like Connect for a subscriber that something else connects: what it receives is
// added by Receive. It closes the connection with Close. The replica is asked only for its
// revision.
func (h *History) Remote(s Subscriber, d Dial) *Connection {
	c := h.newConnection(s, d)
	c.behind, c.forgets = s.Snapshot().Revision(), d.Forgets
	h.Add(c)
	return c
}

// Receive adds what was received. The replica is still there.
func (c *Connection) Receive(r Received) {
	state := c.source.Snapshot()
	horizon, _ := state.Horizon()
	f := Flush{Order: c.history.nextOrder(), At: r.At, Horizon: horizon, Head: c.behind, after: state.Revision(), Events: r.Events, Cut: r.Position == nil && !r.More}
	if c.forgets {
		f.Horizon = math.MaxUint64
	}
	if c.moving != nil {
		c.arrive(&f)
	}
	for i := range f.Events {
		c.receive(&f, i)
	}
	if r.Position != nil {
		f.Mark = c.markAt(*r.Position)
		f.Mark.Consistent, f.Mark.Revision = r.Consistent, r.Revision
	}
	c.Read = time.Now()
	c.Flushes = append(c.Flushes, f)
}
