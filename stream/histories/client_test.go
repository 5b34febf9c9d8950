package histories

import (
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
)

// client is a subscriber, with or without a connection.
type client struct {
	world *world
	part  *part
	left  *part  // the window that it has until it has that to which it moves, its part; nil: it moves to none
	moves uint64 // how often it moved its window
	name  string
	slow  bool
	rate  int64 // that it must take; 0: any
	// interval is how often it wants changes at most; 0: as they come.
	interval time.Duration
	// holds: it applies events when an id arrives, and drops those without one
	// when its connection ends. Otherwise it applies each at once.
	holds bool
	// verifies: it resumes by digest.
	verifies bool
	repairs  time.Time // since when it finds out what differs; zero: it does not

	conn  *streamtest.Connection
	at    *node
	last  *streamtest.Mark // its last id
	held  streamtest.State // its state when it hung up, unless that is its state at its last id
	ahead uint64           // the head of the replica that sent that
}

func (c *client) up() bool { return c.conn != nil && c.conn.Live() }

// dial connects from an id, with the state held at that id or, after the client's
// last connection, the state that it holds.
func (c *client) dial(n *node, from *streamtest.Mark, held streamtest.State) {
	c.comeBack()
	c.at, c.last, c.held = n, from, nil
	d := streamtest.Dial{Client: c.name, Replica: n.replica(), Slow: c.slow, From: from, Mixed: n.mixed(), OfView: n.narrow, MinRate: c.rate, Verify: c.verifies, Interval: c.interval}
	if held != nil {
		d.Begin, d.Ahead = held, c.ahead
	}
	c.conn = c.part.history.Connect(c.part.of(n), d)
	if !c.slow {
		c.drain()
	}
}

// comeBack decides which window a client wants that was cut off in the middle of a move.
func (c *client) comeBack() {
	if c.left != nil && c.world.rarely(3) {
		c.part = c.left
	}
	c.left = nil
}

// dialSlowly connects from the client's position, and reads nothing yet.
func (c *client) dialSlowly(n *node) {
	slow := c.slow
	c.slow = true
	c.dial(n, c.last, c.held)
	c.slow = slow
}

func (c *client) hangUp() {
	if !c.up() {
		return
	}
	c.note()
	c.keep()
	c.conn.Close()
}

// cut ends the connection during a flush, of which n events arrive.
func (c *client) cut(n int) {
	c.conn.Mixed = c.conn.Mixed || c.at.mixed()
	c.conn.CutAfter(n)
	c.note()
	c.keep()
}

// keep records the client's state when its connection has ended.
func (c *client) keep() {
	c.held = nil
	if !c.holds {
		c.held = c.conn.State()
		c.ahead = max(c.ahead, c.at.watch.Snapshot().Revision())
	}
}

func (c *client) drain() {
	for n := 0; c.step(); n++ {
		if n > 100_000 {
			panic("there is always something to read, although no time passes")
		}
	}
}

// step reads one flush, and keeps its id.
func (c *client) step() bool {
	if !c.up() {
		return false
	}
	c.conn.Mixed = c.conn.Mixed || c.at.mixed()
	ok := c.conn.Step()
	c.note()
	return ok
}

// repair makes a request for what differs, unless it is refused. Any node may answer. A client that asks for a state that none
// of them has comes back later.
func (c *client) repair() {
	switch {
	case !c.up() || !c.conn.Repairing():
		c.repairs = time.Time{}
		return
	case c.repairs.IsZero():
		c.repairs = time.Now()
	case !c.slow && time.Since(c.repairs) > heartbeat/2: // it must learn soon how fresh the watch is
		c.finishRepair()
		return
	}
	if c.world.rarely(4) {
		return
	}
	at := c.at
	if c.world.rarely(3) {
		at = c.world.nodeOf(c.part)
	}
	if at.stopped {
		return // the connection is refused
	}
	has := c.conn.Repair(c.part.of(at))
	c.note()
	switch {
	case has:
		reached.add(1, "requests of a subscriber for what differs")
	case at != c.at:
		reached.add(1, "requests of a subscriber to a node without the state")
	default:
		reached.add(1, "repairs for which the state is gone")
		c.world.say("%s comes back later, since the state is gone at %s", c.name, c.at.name)
		c.hangUp()
	}
}

// finishRepair makes all requests for what differs.
func (c *client) finishRepair() {
	for c.up() && c.conn.Repairing() {
		if !c.conn.Repair(c.part.of(c.at)) {
			c.hangUp()
		}
		c.note()
	}
}

// note keeps the ids of the connection.
func (c *client) note() {
	c.world.serves(c.at)
	if !c.conn.Moving() {
		c.left = nil
	}
	for _, m := range c.conn.Marks() {
		c.last = m
		c.part.give(m)
	}
}
