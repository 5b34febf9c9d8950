package histories

import (
	"fmt"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
)

func (w *world) connect() error {
	if len(w.clients) >= 5 {
		return nil
	}
	c := &client{
		world: w, part: w.aPart(), name: fmt.Sprint("c", len(w.clients)),
		slow: w.rarely(2), holds: !w.rarely(2), verifies: w.rarely(2),
	}
	if w.rarely(2) {
		c.rate = 1 << 20
	}
	if w.rarely(4) {
		c.interval = []time.Duration{500 * time.Millisecond, 2 * time.Second}[w.pick(2)]
	}
	c.holds = c.holds || c.part.sorting != nil || c.part.grouping != nil // what such a client may hold beyond its id is known of views only
	w.clients = append(w.clients, c)
	n := w.nodeOf(c.part)
	w.say("%s connects to %s (%s, slow %t, holds %t, verifies %t, interval %v)", c.name, n.name, c.part.name, c.slow, c.holds, c.verifies, c.interval)
	c.dial(n, nil, nil)
	return nil
}

// move brings a client to any node, with its own last id and state, or with any id
// that was ever issued.
func (w *world) move() error {
	c := w.client()
	if c == nil {
		return nil
	}
	c.hangUp()
	n, ids := w.nodeOf(c.part), c.part.ids
	if len(ids) == 0 || w.pick(3) < 2 {
		w.say("%s resumes at %s from %s", c.name, n.name, idText(c.last))
		c.dial(n, c.last, c.held)
		return nil
	}
	m := ids[len(ids)-1-w.pick(len(ids))]
	w.say("%s comes to %s with %s", c.name, n.name, idText(m))
	c.dial(n, m, nil)
	return nil
}

// cut breaks the connection of a client during a flush.
func (w *world) cut() error {
	c := w.client()
	if c == nil {
		return nil
	}
	after := w.pick(6)
	if !c.up() || !c.slow {
		// It reads everything at once, so there is something to cut only after a
		// transaction.
		if !c.up() {
			c.dial(w.nodeOf(c.part), c.last, c.held)
		}
		_ = w.commit()
		synctest.Wait()
	}
	w.say("%s is cut off at %s after %d events of a flush", c.name, c.at.name, after)
	c.cut(after)
	return nil
}

// overtake breaks the connection of a client inside several transactions, of which
// another root has seen none, and brings it to any node.
func (w *world) overtake() error {
	c := w.client()
	if c == nil || !c.part.isAt(w.roots[0]) {
		return nil
	}
	c.hangUp()
	n := w.root()
	n.endpoint.Catch(-1)
	synctest.Wait()
	c.dial(n, c.last, c.held)
	c.drain()
	key, more := keys[w.pick(len(keys))], w.pick(3)
	for range 2 + more {
		w.upstream.Commit(1, streamtest.Write{Key: key, Value: w.value(), Delete: w.rarely(4)})
	}
	n.endpoint.Catch(-1)
	synctest.Wait()
	after := 1 + w.pick(4)
	w.say("%s is cut off at %s after %d events of %d transactions of %s, up to %d", c.name, n.name, after, 2+more, key, w.upstream.Revision())
	c.cut(after)
	to := w.nodeOf(c.part)
	w.say("%s resumes at %s from %s", c.name, to.name, idText(c.last))
	c.dial(to, c.last, c.held)
	return nil
}

// detour brings a client from a root that has an outage to another one, which it
// leaves inside a flush, and back to the first.
func (w *world) detour() error {
	c, home, to := w.client(), w.root(), w.root()
	if c == nil || home == to || !c.part.isAt(home) {
		return nil
	}
	c.hangUp()
	key := keys[w.pick(len(keys))]
	w.upstream.Commit(1, streamtest.Write{Key: "z", Value: w.value()})
	home.endpoint.Catch(-1)
	to.endpoint.Catch(-1)
	w.settle()
	c.dial(home, c.last, c.held)
	c.drain()
	c.hangUp()
	home.endpoint.Refuse(errRefused)
	w.upstream.Commit(1, streamtest.Write{Key: key, Value: w.value()})
	to.endpoint.Catch(-1)
	synctest.Wait()
	c.dialSlowly(to)
	after := w.pick(4)
	c.cut(after)
	w.upstream.Commit(1, streamtest.Write{Key: key, Delete: true})
	home.endpoint.Catch(-1)
	if w.shape.patchy {
		home.endpoint.Compact()
	}
	home.endpoint.Refuse(nil)
	w.advance(300 * time.Millisecond)
	w.say("%s leaves %s in an outage, gets %d events of a flush of %s, and comes back; %s is deleted, at %d",
		c.name, home.name, after, to.name, key, w.upstream.Revision())
	c.dial(home, c.last, c.held)
	return nil
}

// fork makes another client that has received what one has, and both go on by themselves: the
// first is a group, which may be in the middle of what it is sent.
func (w *world) fork() error {
	c := w.client()
	if c == nil || !c.up() || c.conn.Moving() || len(w.clients) >= 8 {
		return nil
	}
	f := *c
	f.name = fmt.Sprint("c", len(w.clients))
	f.conn = c.conn.Fork(f.name)
	w.clients = append(w.clients, &f)
	w.say("%s is taken out of the group of %s, at %s", f.name, c.name, c.at.name)
	return nil
}

func (w *world) readSome() error {
	c := w.client()
	if c == nil || !c.up() {
		return nil
	}
	n := 1 + w.pick(3)
	w.say("%s reads %d flushes", c.name, n)
	for range n {
		c.step()
		c.repair()
	}
	return nil
}

// verify brings a client that resumes by digest to a node that has lost its history, or to another order, and lets the history
// go on while it finds out what differs.
func (w *world) verify() error {
	c := w.client()
	if c == nil || !c.verifies || c.part.sorting != nil {
		return nil
	}
	c.hangUp()
	slow := c.slow
	c.slow = true
	defer func() { c.slow = slow }()
	for range 1 + w.pick(3) {
		if err := w.commit(); err != nil {
			return err
		}
	}
	if err := oneOf(w.choices, w.restart, w.replace, w.restore)(); err != nil {
		return err
	}
	w.advance(300 * time.Millisecond)
	for range 4 + w.pick(12) {
		if !c.up() {
			n := w.nodeOf(c.part)
			w.say("%s resumes by digest at %s from %s", c.name, n.name, idText(c.last))
			c.dial(n, c.last, c.held)
		}
		c.step()
		c.repair()
		var err error
		switch w.pick(10) {
		case 1, 2:
			err = w.commit()
		case 3:
			err = w.catchUp()
		case 4:
			if c.up() {
				w.say("%s is cut off at %s (repairs %t)", c.name, c.at.name, c.conn.Repairing())
				c.cut(w.pick(3))
			}
		case 5:
			w.advance(oneOf(w.choices, time.Second, 11*time.Second))
		case 6:
			err = w.restart()
		}
		w.settle()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) leave() error {
	if c := w.client(); c != nil && c.up() {
		w.say("%s leaves", c.name)
		c.hangUp()
	}
	return nil
}

// client returns a client of its own accord; nil if there is none.
func (w *world) client() *client {
	if len(w.clients) == 0 {
		return nil
	}
	return w.clients[w.pick(len(w.clients))]
}

func idText(m *streamtest.Mark) string {
	if m == nil {
		return "nothing"
	}
	return m.Position.String()
}
