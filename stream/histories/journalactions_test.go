package histories

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// keeper returns a node that has a journal; nil if there is none.
func (w *world) keeper() *node {
	keepers := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n.kept == nil })
	if len(keepers) == 0 {
		return nil
	}
	return keepers[w.pick(len(keepers))]
}

// away ends a node in an orderly way, lets the upstream go on, and starts the node again.
func (w *world) away() error {
	n := w.keeper()
	if n == nil || w.stealth && !n.keeps() {
		return nil
	}
	stealthily := w.mayGoBack() && w.rarely(4)
	if stealthily {
		if err := w.level(); err != nil || !w.atHead() || !n.keeps() {
			return err
		}
	}
	clients := w.hangUpAt(n)
	w.settle()
	was, keeps := n.remember(), n.keeps() && !n.kept.weak
	n.stop()
	w.say("%s ends in an orderly way, at %s", n.name, was.place)
	passed := false
	if stealthily { // what it reaches after that would not show that it went back
		w.goBack()
	} else {
		var err error
		if passed, err = w.goOn(n); err != nil {
			return err
		}
	}
	w.weaken(n)
	n.reach(false)
	if err := n.start(); err != nil {
		return err
	}
	w.settle()
	if err := was.checkEnd(); err != nil {
		return err
	}
	if keeps && !passed && !n.kept.weak {
		if err := was.check(); err != nil {
			return err
		}
		reached.add(len(was.ids), "ids that are resumed after an orderly restart")
	}
	n.countStart("an orderly end")
	if err := w.comeBack(n, clients); err != nil || !stealthily {
		return err
	}
	return w.level()
}

// crash ends a node at once. What its disk has is as of some transactions earlier.
func (w *world) crash() error {
	n := w.keeper()
	if n == nil || w.stealth {
		return nil
	}
	if err := w.gap(n); err != nil {
		return err
	}
	takes := w.pick(4)
	n.kept.takes.Store(int64(takes))
	w.say("%s writes %d more transactions into its journal", n.name, takes)
	for range w.pick(3) {
		if err := w.commit(); err != nil {
			return err
		}
		w.settle()
	}
	w.advance(oneOf(w.choices, 0, 100*time.Millisecond, 300*time.Millisecond, time.Second))
	clients := w.hangUpAt(n)
	was := n.remember()
	w.say("%s is killed, at %s", n.name, was.place)
	n.stop()
	if _, err := w.goOn(n); err != nil {
		return err
	}
	w.weaken(n)
	n.reach(false)
	if err := n.start(); err != nil {
		return err
	}
	w.settle()
	if err := was.checkEnd(); err != nil {
		return err
	}
	n.countStart("a kill")
	return w.comeBack(n, clients)
}

// gap makes a root miss a part of the upstream's history, or not: its horizon is above what its own readers have.
func (w *world) gap(n *node) error {
	if n.endpoint == nil || !w.shape.patchy || w.rarely(2) {
		return nil
	}
	w.say("%s misses something", n.name)
	n.endpoint.Disconnect(streamtest.ErrCut)
	for range 2 {
		if err := w.commit(); err != nil {
			return err
		}
	}
	n.endpoint.Catch(-1)
	n.endpoint.Compact()
	w.advance(time.Second)
	return nil
}

// countStart counts how a node has started that cannot reach its upstream yet.
func (n *node) countStart(after string) {
	has := "nothing"
	if n.watch.Snapshot().Primed() {
		has = "a state"
	}
	reached.add(1, "starts after %s with %s", after, has)
}

// weaken makes the disk of the next process of a node take few transactions, or any number. After a restore by
// stealth, which it could not detect, it takes any number.
func (w *world) weaken(n *node) {
	if w.stealth || !w.rarely(4) {
		return
	}
	takes := w.pick(4)
	n.kept.takes.Store(int64(takes))
	w.say("the disk of %s takes %d transactions", n.name, takes)
}

// failDisk makes the disk of a node take no more than some transactions until it starts again.
func (w *world) failDisk() error {
	n := w.keeper()
	if n == nil || w.stealth {
		return nil
	}
	takes := w.pick(6)
	n.kept.takes.Store(int64(takes))
	w.say("the disk of %s takes %d more transactions", n.name, takes)
	return nil
}

// goOn lets the upstream go on while a node is away. It reports whether time has passed.
func (w *world) goOn(n *node) (passed bool, err error) {
	for range w.pick(5) {
		switch w.pick(6) {
		case 0, 1:
			err = w.commit()
		case 2:
			err = w.vanish()
		case 3:
			if err = w.restore(); err == nil && w.shape.patchy && n.endpoint != nil {
				n.endpoint.Compact()
			}
		case 4:
			err = w.fallBack()
		case 5:
			if w.stealth {
				continue // a journal that is too old does not know that the upstream went back
			}
			d := oneOf(w.choices, 500*time.Millisecond, 4*time.Second, 6*time.Second)
			w.say("%v pass without %s", d, n.name)
			w.advance(d)
			passed = true
		}
		if err != nil {
			return passed, err
		}
	}
	return passed, nil
}

// comeBack brings clients back to a node that has started, and makes it reach its upstream before or after
// that.
func (w *world) comeBack(n *node, clients []*client) error {
	late := w.pick(2) == 0
	if !late {
		n.reach(true)
		w.advance(300 * time.Millisecond)
	}
	for _, c := range clients {
		if !c.part.isAt(n) || w.rarely(4) {
			continue
		}
		w.say("%s comes back to %s from %s", c.name, n.name, idText(c.last))
		c.dial(n, c.last, c.held)
	}
	w.settle()
	if late {
		w.advance(oneOf(w.choices, 0, 500*time.Millisecond))
		n.reach(true)
		w.advance(300 * time.Millisecond)
	}
	if s := n.watch.Stats().Resyncs; n.watch.Status().State == stream.InSync && s["initial"]+s["reconnect"]+s["epoch_changed"] == 0 {
		reached.add(1, "starts that go on without a snapshot")
	}
	return nil
}

// reach makes the node reach its upstream, or not.
func (n *node) reach(reaches bool) {
	switch {
	case n.endpoint == nil:
		n.link.set(func() { n.link.refuses = !reaches })
	case reaches:
		n.endpoint.Refuse(nil)
	default:
		n.endpoint.Refuse(errRefused)
	}
}

// mayGoBack reports whether the upstream may be restored without a new name.
func (w *world) mayGoBack() bool {
	return w.upstream.Oldest() < w.upstream.Revision() && !w.shape.views && !w.shape.guarded
}

// goBack restores the upstream without a new name. Everything is at its head.
func (w *world) goBack() {
	oldest, head := w.upstream.Oldest(), w.upstream.Revision()
	epoch, _ := w.upstream.Truth().Newest()
	to := oldest + uint64(w.pick(int(head-oldest)))
	w.upstream.Restore(epoch, to)
	w.stealth = true
	w.say("the upstream is restored to %d by stealth", to)
}
