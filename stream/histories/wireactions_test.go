package histories

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	goclient "github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest"
)

// connectWire connects a client beyond a network.
func (w *world) connectWire() error {
	if len(w.wires) >= w.shape.wires {
		return nil
	}
	c := &wire{world: w, name: fmt.Sprint("wire ", len(w.wires)), polls: w.rarely(3), link: newLink("", nil)}
	c.link.of = c.name
	p := w.aPart()
	c.polls = c.polls && p.params.After == "" // which is a position there
	if p.grouping != nil {
		p = w.parts[0] // counts have paths of their own
	}
	c.follow(p)
	if !c.polls && w.pick(4) > 0 {
		c.follow(w.beside)
		if w.rarely(2) {
			slices.Reverse(c.follows)
		}
	}
	w.wires = append(w.wires, c)
	return c.connect(w.nodeFor(c))
}

func (c *wire) follow(p *part) {
	c.follows = append(c.follows, &follow{part: p, replica: goclient.NewReplica(p.watchName())})
}

// nodeFor returns a node that has all that a client follows; nil: there is none.
func (w *world) nodeFor(c *wire) *node {
	var have []*node
	for _, n := range w.nodes {
		if !slices.ContainsFunc(c.follows, func(f *follow) bool { return !f.part.isAt(n) }) {
			have = append(have, n)
		}
	}
	if len(have) == 0 {
		return nil
	}
	return have[w.pick(len(have))]
}

func (c *wire) connect(n *node) error {
	if n == nil {
		return nil
	}
	text := ""
	for _, f := range c.follows {
		text += fmt.Sprintf(" %s from %s", f.part.name, idText(f.last))
	}
	c.world.say("%s asks %s (polls %t) for%s", c.name, n.name, c.polls, text)
	return c.dial(n)
}

// wire returns a client beyond a network; nil: there is none.
func (w *world) wire() *wire {
	if len(w.wires) == 0 {
		return nil
	}
	return w.wires[w.pick(len(w.wires))]
}

// moveWire brings a client to another node.
func (w *world) moveWire() error {
	c := w.wire()
	if c == nil {
		return nil
	}
	c.hangUp()
	synctest.Wait()
	return c.connect(w.nodeFor(c))
}

// stallWire lets some bytes through to a client, and then none.
func (w *world) stallWire() error {
	if c := w.wire(); c != nil {
		bytes := w.pick(40) * 50
		if w.shape.heavy {
			bytes *= 200
		}
		w.say("%s reads %d bytes", c.name, bytes)
		c.link.stall(bytes)
	}
	return nil
}

func (w *world) freeWire() error {
	if c := w.wire(); c != nil {
		w.say("%s reads everything", c.name)
		c.link.free()
	}
	return nil
}

// meanwhile shows a large transaction to a client that does not take it at once, and then a
// change of the other watch.
func (w *world) meanwhile() error {
	c := w.wire()
	if c == nil || !c.up() {
		return nil
	}
	bytes := 200 + w.pick(20)*100
	if w.shape.heavy {
		bytes *= 200
	}
	c.link.stall(bytes)
	if err := w.bulk(); err != nil {
		return err
	}
	synctest.Wait()
	if err := w.commitBeside(); err != nil {
		return err
	}
	synctest.Wait()
	w.say("%s has read %d bytes meanwhile", c.name, bytes)
	if w.rarely(3) {
		return nil
	}
	c.link.free()
	return nil
}

// commitBeside makes a transaction of the other watch, which some roots show at once.
func (w *world) commitBeside() error {
	var writes []streamtest.Write
	for i := range 1 + w.pick(2) {
		writes = append(writes, streamtest.Write{Key: keys[i+w.pick(3)*2], Value: w.value(), Delete: w.rarely(4)})
	}
	w.say("transaction %d of the other watch", w.besides.Commit(1, writes...))
	for _, n := range w.roots {
		if w.pick(4) > 0 {
			n.besides.Catch(-1)
		}
	}
	return nil
}

// extraKeys make transactions of more than a flush.
var extraKeys = func() (out []string) {
	for i := range 16 {
		out = append(out, fmt.Sprintf("f/%02d", i))
	}
	return out
}()

// bulk changes many keys in one transaction, which some roots show at once.
func (w *world) bulk() error {
	if w.shape.wide {
		return nil
	}
	all := slices.Concat(keys, extraKeys)
	var writes []streamtest.Write
	for _, key := range all[:4+w.pick(len(all)-3)] {
		writes = append(writes, streamtest.Write{Key: key, Value: w.value(), Delete: w.rarely(8)})
	}
	w.say("transaction %d: %d keys", w.upstream.Commit(1, writes...), len(writes))
	for _, n := range w.roots {
		if w.pick(3) < 2 {
			n.endpoint.Catch(-1)
			w.say("%s is shown all", n.name)
		}
	}
	return nil
}

// purge deletes many keys, which some roots show at once.
func (w *world) purge() error {
	if w.shape.wide {
		return nil
	}
	all, apart := slices.Concat(extraKeys, keys), w.rarely(2)
	all = all[:6+w.pick(len(all)-5)]
	var writes []streamtest.Write
	for _, key := range all {
		writes = append(writes, streamtest.Write{Key: key, Delete: true})
		if apart {
			w.upstream.Commit(1, writes...)
			writes = nil
		}
	}
	w.upstream.Commit(1, writes...)
	w.say("%d keys are deleted, up to %d", len(all), w.upstream.Revision())
	for _, n := range w.roots {
		if w.rarely(2) {
			n.endpoint.Catch(-1)
			w.say("%s is shown all", n.name)
		}
	}
	return nil
}

// dawdle lets a slow client read a little, and time pass, while more happens.
func (w *world) dawdle() error {
	c := w.client()
	if c == nil || !w.rarely(2) {
		return nil
	}
	c.hangUp()
	n := w.nodeOf(c.part)
	c.dialSlowly(n)
	more := w.pick(3)
	for range more {
		c.step()
	}
	if err := w.bulk(); err != nil {
		return err
	}
	c.step()
	w.say("%s dawdles at %s, after %d flushes", c.name, n.name, 1+more)
	w.root().endpoint.Catch(-1)
	for range 1 + w.pick(2) {
		w.advance(50 * time.Second)
		change := w.commit
		if w.rarely(2) {
			change = w.bulk // what it has been sent is superseded, and compacted
		}
		for range 1 + w.pick(3) {
			if err := change(); err != nil {
				return err
			}
		}
		w.root().endpoint.Catch(-1)
		w.settle()
		c.step()
	}
	return nil
}

// linger lets a reader lag, lose the state of its catch-up in the middle, and get the rest of a
// newer one, in which what it was sent is superseded, and compacted.
func (w *world) linger() error {
	if w.shape.wide || len(w.clients) >= 8 {
		return nil
	}
	c := &client{world: w, part: w.parts[0], name: fmt.Sprint("c", len(w.clients)), slow: true, holds: true, rate: 1 << 20}
	if w.shape.views && !w.rarely(4) {
		c.part = w.parts[narrowest]
	}
	n := w.root()
	if !c.part.isAt(n) {
		return nil
	}
	w.clients = append(w.clients, c)
	n.endpoint.Catch(-1)
	w.settle()
	c.dial(n, nil, nil)
	c.drain()
	w.rewriteAll(n, 2+w.pick(3))
	steps := 1 + w.pick(6)
	for range steps {
		c.step()
	}
	w.say("%s lingers at %s after %d flushes of what it lags behind (%s)", c.name, n.name, steps, c.part.name)
	restores := w.restores
	if err := w.restore(); err != nil {
		return err
	}
	if w.restores > restores { // what it lags behind is over: it lags behind the snapshot of what follows
		w.advance(time.Second)
		for range 1 + w.pick(3) {
			c.step()
		}
		w.rewriteAll(n, 2+w.pick(3))
		c.drain()
		return nil
	}
	w.rewriteAll(n, 2+w.pick(3))
	w.advance(50 * time.Second) // its rate is too low
	c.drain()
	return nil
}

// rewriteAll changes all keys of small histories several times, as a root shows at once.
func (w *world) rewriteAll(n *node, times int) {
	for range times {
		for _, key := range slices.Concat(keys, extraKeys) {
			w.upstream.Commit(1, streamtest.Write{Key: key, Value: w.value()})
		}
		n.endpoint.Catch(-1)
		w.settle()
	}
	w.say("all keys are written %d times, up to %d, and %s is shown all", times, w.upstream.Revision(), n.name)
}
