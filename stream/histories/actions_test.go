package histories

import (
	"fmt"
	"runtime"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
)

// actions are the possible actions; repeated entries happen more often. One that
// is impossible at the moment does nothing. The first is the simplest.
var actions = []func(*world) error{
	(*world).rest,
	(*world).commit, (*world).commit, (*world).commit, (*world).commit, (*world).commit,
	(*world).catchUp, (*world).catchUp, (*world).catchUp,
	(*world).connect, (*world).connect, (*world).connect,
	(*world).move, (*world).move, (*world).move, (*world).move,
	(*world).cut, (*world).cut, (*world).overtake, (*world).detour,
	(*world).readSome, (*world).readSome,
	(*world).leave, (*world).fork, (*world).fork, (*world).verify, (*world).verify,
	(*world).disconnect, (*world).refuse, (*world).accept, (*world).fallBack, (*world).cutSnapshot, (*world).compact,
	(*world).tell,
	(*world).vanish, (*world).vanish, (*world).vanishApart, (*world).vanishApart, (*world).poll, (*world).poll, (*world).poll,
	(*world).restore, (*world).restoreByStealth, (*world).restart, (*world).replace,
	(*world).pass, (*world).pass, (*world).pass,
	(*world).balance, (*world).balance, (*world).balance,
	(*world).stall, (*world).stall, (*world).stall,
	(*world).join, (*world).join, (*world).join,
	(*world).cutLink, (*world).freeLink, (*world).refuseLink,
	(*world).outage, (*world).outage,
	(*world).tear, (*world).tear,
	(*world).churn, (*world).churn,
	(*world).connectWire, (*world).connectWire, (*world).connectWire,
	(*world).moveWire, (*world).moveWire, (*world).stallWire, (*world).freeWire,
	(*world).meanwhile, (*world).meanwhile, (*world).commitBeside,
	(*world).connectProgram, (*world).connectProgram, (*world).disturb, (*world).disturb, (*world).mend, (*world).mend,
	(*world).bulk, (*world).bulk, (*world).purge, (*world).purge, (*world).dawdle, (*world).linger, (*world).linger,
	(*world).lieToAll, (*world).changeRules,
	(*world).away, (*world).away, (*world).crash, (*world).crash, (*world).failDisk,
	(*world).betray, (*world).betray, (*world).betray, (*world).thereAndBack, (*world).pry,
}

// windowActions are those of histories with windows.
var windowActions = []func(*world) error{
	(*world).rest, (*world).slide, (*world).slide, (*world).slideAway, (*world).slideWire, (*world).slideWire, (*world).slideTwice,
}

func (w *world) act() error {
	if len(w.windows) > 0 && w.rarely(4) {
		return windowActions[w.pick(len(windowActions))](w)
	}
	if w.shape.guarded && w.shape.windows && w.rarely(6) {
		return w.look()
	}
	if *repairs && w.rarely(2) {
		return oneOf(w.choices, (*world).connectProgram, (*world).disturb, (*world).mend, (*world).verify)(w)
	}
	if *detours && w.rarely(3) {
		return w.detour()
	}
	if w.shape.wide && w.rarely(3) {
		return w.stopAtOnce()
	}
	return actions[w.pick(len(actions))](w)
}

func (w *world) value() string {
	w.values++
	if w.shape.heavy {
		return fmt.Sprintf(`{"n":%d,"secret":%[1]d,"pad":"%0*d"}`, w.values, 20_000, 0)
	}
	if w.shape.guarded {
		return fmt.Sprintf(`{"n":%d,"secret":%[1]d}`, w.values)
	}
	return streamtest.ValueOf(w.values)
}

func (w *world) rest() error { return nil }

// hangUpAt ends the connections to a node. It returns its clients, without those beyond a network.
func (w *world) hangUpAt(n *node) (were []*client) {
	for _, c := range w.clients {
		if c.at == n && c.up() {
			c.hangUp()
			were = append(were, c)
		}
	}
	for _, c := range w.wires {
		if c.at == n {
			c.hangUp()
		}
	}
	return were
}

// restart replaces a node with an empty one, or one that goes on with its journal. Not after a restore by
// stealth, which it could not detect without.
func (w *world) restart() error {
	n := w.nodes[w.pick(len(w.nodes))]
	if w.stealth && !n.keeps() {
		return nil
	}
	w.hangUpAt(n)
	n.stop()
	w.say("%s is restarted", n.name)
	return n.start()
}

// replace replaces the watch of a node. As with restart, its clients come back.
func (w *world) replace() error {
	n := w.nodes[w.pick(len(w.nodes))]
	if w.stealth && !n.keeps() {
		return nil
	}
	w.hangUpAt(n)
	w.say("the watch of %s is replaced", n.name)
	return n.replace()
}

// stopAtOnce replaces a node while it takes in a transaction, at a moment that is up
// to the scheduler. Its subscribers read everything that it still published.
func (w *world) stopAtOnce() error {
	n := w.root()
	if w.stealth {
		return nil
	}
	n.endpoint.Catch(-1)
	w.settle()
	c := &client{world: w, part: w.parts[0], name: fmt.Sprint("c", len(w.clients)), holds: true, slow: true}
	w.clients = append(w.clients, c)
	c.dial(n, nil, nil)
	c.drain()
	w.rewrite()
	n.endpoint.Catch(-1)
	for range 1 << w.pick(14) {
		runtime.Gosched()
	}
	w.say("%s is stopped while it takes in a transaction", n.name)
	n.stop()
	for _, c := range w.clients {
		if c.at == n && c.up() {
			c.drain()
		}
	}
	w.hangUpAt(n)
	return n.start()
}

func (w *world) pass() error {
	d := oneOf(w.choices, time.Second, 60*time.Millisecond, 200*time.Millisecond, 3*time.Second, 7*time.Second, 15*time.Second)
	w.say("%v pass", d)
	w.advance(d)
	return nil
}

func (w *world) root() *node { return w.roots[w.pick(len(w.roots))] }
