package histories

import (
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
)

// balance makes the load balancer of a node choose another upstream.
func (w *world) balance() error {
	n := w.other()
	if n == nil {
		return nil
	}
	to := w.pick(len(n.link.targets))
	n.link.set(func() { n.link.target = to })
	w.say("the next request of %s goes to %s", n.name, n.link.targets[to].name)
	return nil
}

// stall lets some bytes through to a node, and then none.
func (w *world) stall() error {
	if n := w.other(); n != nil {
		bytes := oneOf(w.choices, w.pick(40)*25, 60+w.pick(12)*40)
		if w.shape.heavy {
			bytes *= 200
		}
		n.link.stall(bytes)
		w.say("the upstream of %s stalls after %d bytes", n.name, bytes)
	}
	return nil
}

func (w *world) freeLink() error {
	if n := w.other(); n != nil {
		n.link.free()
		w.say("the upstream of %s flows again", n.name)
	}
	return nil
}

func (w *world) cutLink() error {
	if n := w.other(); n != nil {
		n.link.cut()
		w.say("the upstream of %s is cut off", n.name)
	}
	return nil
}

func (w *world) refuseLink() error {
	if n := w.other(); n != nil {
		n.link.set(func() { n.link.refuses = !n.link.refuses })
		w.say("the upstream of %s refuses connections: %t", n.name, n.link.refuses)
	}
	return nil
}

// join lets the second watch of a node join the request of the first, or leave it.
func (w *world) join() error {
	n := w.other()
	if n == nil {
		return nil
	}
	w.say("the other watch of %s joins: %t", n.name, !n.joined)
	err := n.join()
	if w.pick(2) == 0 {
		w.advance(100 * time.Millisecond)
	}
	return err
}

// tear stops a transaction or a snapshot on its way to a node, and has its request
// repeated, perhaps to a root that does not have it yet.
func (w *world) tear() error {
	n := w.other()
	if n == nil {
		return nil
	}
	if w.rarely(3) {
		n.link.cut()
		synctest.Wait()
	}
	if err := w.stall(); err != nil {
		return err
	}
	var writes []streamtest.Write
	for _, key := range w.keys()[w.pick(4):][:4] {
		writes = append(writes, streamtest.Write{Key: key, Value: w.value()})
	}
	w.say("transaction %d: 4 keys", w.upstream.Commit(1, writes...))
	for _, root := range w.roots {
		if root == n.link.served.Load() || w.rarely(3) {
			root.endpoint.Catch(-1)
			w.say("%s is shown all", root.name)
		}
	}
	w.advance(100 * time.Millisecond)
	n.link.set(func() { n.link.target += 1 - w.pick(2) })
	if err := w.join(); err != nil {
		return err
	}
	w.advance(200 * time.Millisecond)
	return nil
}

// other returns a node that follows others; nil if there is none.
func (w *world) other() *node {
	others := w.nodes[len(w.roots):]
	if len(others) == 0 {
		return nil
	}
	return others[w.pick(len(others))]
}
