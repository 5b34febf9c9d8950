package histories

import (
	"fmt"
	"runtime"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/streamtest"
)

// actions are what may happen, more than once if it is to happen more often. One
// that cannot happen now does nothing. The first is the simplest.
var actions = []func(*world) error{
	(*world).rest,
	(*world).commit, (*world).commit, (*world).commit, (*world).commit, (*world).commit,
	(*world).catchUp, (*world).catchUp, (*world).catchUp,
	(*world).connect, (*world).connect, (*world).connect,
	(*world).move, (*world).move, (*world).move, (*world).move,
	(*world).cut, (*world).cut, (*world).overtake,
	(*world).readSome, (*world).readSome,
	(*world).leave,
	(*world).disconnect, (*world).refuse, (*world).accept, (*world).fallBack, (*world).cutSnapshot, (*world).compact,
	(*world).tell,
	(*world).vanish, (*world).vanish, (*world).poll, (*world).poll, (*world).poll,
	(*world).restore, (*world).restoreByStealth, (*world).restart,
	(*world).pass, (*world).pass, (*world).pass,
	(*world).balance, (*world).balance, (*world).balance,
	(*world).stall, (*world).stall, (*world).stall,
	(*world).join, (*world).join, (*world).join,
	(*world).cutLink, (*world).freeLink, (*world).refuseLink,
	(*world).outage, (*world).outage,
	(*world).tear, (*world).tear,
	(*world).churn, (*world).churn,
}

func (w *world) act() error {
	if w.shape.wide && w.rarely(3) {
		return w.stopAtOnce()
	}
	return actions[w.pick(len(actions))](w)
}

func (w *world) value() string {
	w.values++
	if w.shape.heavy {
		return fmt.Sprintf(`{"n":%d,"pad":"%0*d"}`, w.values, 20_000, 0)
	}
	return streamtest.ValueOf(w.values)
}

func (w *world) rest() error { return nil }

// commit makes one transaction, which some endpoints show at once.
func (w *world) commit() error {
	var writes []streamtest.Write
	text := ""
	at, n, keys := w.pick(len(w.keys())), 1+w.pick(4), w.keys()
	for i := range n {
		key := keys[(at+i*(1+w.pick(3)))%len(keys)]
		if len(writes) > 0 && writes[len(writes)-1].Key == key {
			continue
		}
		remove := w.rarely(3)
		writes = append(writes, streamtest.Write{Key: key, Value: w.value(), Delete: remove})
		text += map[bool]string{true: " -", false: " +"}[remove] + key
	}
	writes = distinct(writes)
	revision := w.upstream.Commit(uint64(1+w.pick(2)), writes...)
	w.say("transaction %d:%s", revision, text)
	for _, n := range w.roots {
		if w.pick(3) < 2 {
			n.endpoint.Catch(-1)
			w.say("%s is shown all", n.name)
		}
	}
	return nil
}

// distinct keeps the first write of each key.
func distinct(writes []streamtest.Write) (out []streamtest.Write) {
	seen := map[string]bool{}
	for _, write := range writes {
		if !seen[write.Key] {
			seen[write.Key] = true
			out = append(out, write)
		}
	}
	return out
}

func (w *world) catchUp() error {
	n, most := w.root(), w.pick(5)-1
	n.endpoint.Catch(most)
	w.say("%s is shown %d", n.name, most)
	return nil
}

func (w *world) disconnect() error {
	errs := []error{streamtest.ErrCut, nil}
	if w.shape.patchy {
		errs = append(errs, stream.ErrUnresumable)
	}
	n, err := w.root(), oneOf(w.choices, errs...)
	n.endpoint.Disconnect(err)
	w.say("%s loses the upstream: %v", n.name, err)
	return nil
}

func (w *world) refuse() error {
	n := w.root()
	n.endpoint.Refuse(errRefused)
	w.say("%s is refused by the upstream", n.name)
	return nil
}

func (w *world) accept() error {
	n := w.root()
	n.endpoint.Refuse(nil)
	w.say("%s is accepted by the upstream", n.name)
	return nil
}

func (w *world) fallBack() error {
	if w.shape.patchy {
		n, back := w.root(), 1+w.pick(6)
		n.endpoint.FallBack(back)
		w.say("%s falls back by %d", n.name, back)
	}
	return nil
}

func (w *world) cutSnapshot() error {
	if w.shape.patchy {
		n, after := w.root(), w.pick(5)
		n.endpoint.CutSnapshot(after)
		n.endpoint.Compact()
		n.endpoint.Disconnect(stream.ErrUnresumable)
		w.say("%s begins again, and is cut off after %d resources", n.name, after)
	}
	return nil
}

func (w *world) compact() error {
	if w.shape.patchy {
		n := w.root()
		n.endpoint.Compact()
		w.say("history of %s is compacted", n.name)
	}
	return nil
}

// tell lets the upstream say how fresh it is.
func (w *world) tell() error {
	n, state := w.root(), oneOf(w.choices, stream.InSync, stream.Stale, stream.Resyncing)
	n.endpoint.Say(state, "says the upstream")
	w.say("%s is told that the upstream is %v", n.name, state)
	return nil
}

// vanish lets resources go without a trace.
func (w *world) vanish() error {
	if w.shape.deletes == streamtest.Vanishing {
		key := w.keys()[w.pick(len(w.keys()))]
		if w.upstream.Vanish(key) > 0 {
			w.say("%s vanishes at %d", key, w.upstream.Revision())
		}
	}
	return nil
}

// poll lets an endpoint look what is there.
func (w *world) poll() error {
	if w.shape.deletes == streamtest.Vanishing {
		n := w.root()
		n.endpoint.Poll()
		w.say("%s looks what is there", n.name)
	}
	return nil
}

// restore takes the upstream back to an older state under a new name.
func (w *world) restore() error {
	if !w.rarely(3) {
		return nil
	}
	oldest, head := w.upstream.Oldest(), w.upstream.Revision()
	to := oldest + uint64(w.pick(int(head-oldest)+1))
	w.restores++
	w.upstream.Restore(fmt.Sprint("e", w.restores), to)
	for _, n := range w.roots {
		n.endpoint.Move()
	}
	w.say("the upstream is restored to %d as e%d", to, w.restores)
	return nil
}

// restoreByStealth takes the upstream back under the same name, which it must not:
// the gateway has to find out. It can, as long as the upstream stays behind what
// was served.
func (w *world) restoreByStealth() error {
	oldest, head := w.upstream.Oldest(), w.upstream.Revision()
	if oldest == head || !w.rarely(3) {
		return nil
	}
	if err := w.level(); err != nil || !w.atHead() {
		return err
	}
	epoch, _ := w.upstream.Truth().Newest()
	to := oldest + uint64(w.pick(int(head-oldest)))
	w.upstream.Restore(epoch, to)
	w.stealth = true
	w.say("the upstream is restored to %d by stealth", to)
	if err := w.level(); err != nil || w.rarely(2) {
		return err
	}
	n := w.root()
	n.endpoint.Foreign()
	w.say("%s has one connection to something else", n.name)
	w.advance(300 * time.Millisecond)
	return nil
}

// restart replaces a node by one that knows nothing. Not after a restore by
// stealth, of which it could not know.
func (w *world) restart() error {
	n := w.nodes[w.pick(len(w.nodes))]
	if w.stealth {
		return nil
	}
	for _, c := range w.clients {
		if c.at == n {
			c.hangUp()
		}
	}
	n.stop()
	w.say("%s is restarted", n.name)
	return n.start()
}

// churn writes the same few keys again and again, so much that slow readers fall
// behind and segments are rewritten.
func (w *world) churn() error {
	if !w.shape.heavy {
		return nil
	}
	for i := range 10 + w.pick(20) {
		w.upstream.Commit(1, streamtest.Write{Key: keys[i%3], Value: w.value(), Delete: i%10 == 9})
	}
	n := w.root()
	n.endpoint.Catch(-1)
	w.say("much is written, up to %d, and %s is shown all", w.upstream.Revision(), n.name)
	return nil
}

// stopAtOnce replaces a node while it takes in a transaction, at a moment that is up
// to the scheduler. Its subscribers read what it has still published.
func (w *world) stopAtOnce() error {
	n := w.root()
	if w.stealth {
		return nil
	}
	n.endpoint.Catch(-1)
	w.settle()
	c := &client{world: w, name: fmt.Sprint("c", len(w.clients)), holds: true, slow: true}
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
			c.hangUp()
		}
	}
	return n.start()
}

// rewrite changes every key in one transaction, which nobody is shown.
func (w *world) rewrite() {
	var writes []streamtest.Write
	for _, key := range w.keys() {
		writes = append(writes, streamtest.Write{Key: key, Value: w.value()})
	}
	w.say("transaction %d: all keys", w.upstream.Commit(1, writes...))
}

func (w *world) pass() error {
	d := oneOf(w.choices, time.Second, 60*time.Millisecond, 200*time.Millisecond, 3*time.Second, 7*time.Second, 15*time.Second)
	w.say("%v pass", d)
	w.advance(d)
	return nil
}

func (w *world) connect() error {
	if len(w.clients) >= 5 {
		return nil
	}
	c := &client{
		world: w, name: fmt.Sprint("c", len(w.clients)), prefix: oneOf(w.choices, "", "", "a/"),
		slow: w.rarely(2), holds: !w.rarely(2),
	}
	w.clients = append(w.clients, c)
	n := w.node()
	w.say("%s connects to %s (prefix %q, slow %t, holds %t)", c.name, n.name, c.prefix, c.slow, c.holds)
	c.dial(n, nil, nil)
	return nil
}

// move brings a client to any node, with its own last id and what it holds, or with
// any id that was ever given.
func (w *world) move() error {
	c := w.client()
	if c == nil {
		return nil
	}
	c.hangUp()
	n, ids := w.node(), w.ids[c.prefix]
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

func idText(m *streamtest.Mark) string {
	if m == nil {
		return "nothing"
	}
	return m.Position.String()
}

// cut breaks the connection of a client in the middle of a flush.
func (w *world) cut() error {
	c := w.client()
	if c == nil {
		return nil
	}
	after := w.pick(6)
	if !c.up() || !c.slow {
		// It reads what there is at once, so that there is something to cut only
		// behind a transaction.
		if !c.up() {
			c.dial(w.node(), c.last, c.held)
		}
		_ = w.commit()
		synctest.Wait()
	}
	w.say("%s is cut off at %s after %d events of a flush", c.name, c.at.name, after)
	c.cut(after)
	return nil
}

// overtake breaks the connection of a client in the middle of several transactions,
// of which another root has seen none, and brings it to any node.
func (w *world) overtake() error {
	c := w.client()
	if c == nil {
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
	to := w.node()
	w.say("%s resumes at %s from %s", c.name, to.name, idText(c.last))
	c.dial(to, c.last, c.held)
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

// balance lets the balancer in front of what a node follows choose another one.
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
		bytes := w.pick(40) * 25
		if w.shape.heavy {
			bytes *= 200
		}
		n.link.stall(bytes)
		w.say("what %s follows stalls after %d bytes", n.name, bytes)
	}
	return nil
}

func (w *world) freeLink() error {
	if n := w.other(); n != nil {
		n.link.free()
		w.say("what %s follows flows again", n.name)
	}
	return nil
}

func (w *world) cutLink() error {
	if n := w.other(); n != nil {
		n.link.cut()
		w.say("what %s follows is cut off", n.name)
	}
	return nil
}

func (w *world) refuseLink() error {
	if n := w.other(); n != nil {
		n.link.set(func() { n.link.refuses = !n.link.refuses })
		w.say("what %s follows refuses connections: %t", n.name, n.link.refuses)
	}
	return nil
}

// outage lets a root lose the upstream, which forgets what happens meanwhile.
func (w *world) outage() error {
	n := w.root()
	n.endpoint.Refuse(errRefused)
	w.say("%s has an outage", n.name)
	for range 1 + w.pick(4) {
		synctest.Wait()
		if err := w.commit(); err != nil {
			return err
		}
		w.settle()
	}
	n.endpoint.Catch(-1)
	if w.shape.patchy {
		n.endpoint.Compact()
	}
	if !w.rarely(3) {
		n.endpoint.Refuse(nil)
		w.advance(300 * time.Millisecond)
	}
	w.say("the outage of %s is over", n.name)
	return nil
}

// tear stops a transaction, or a snapshot, on its way to a node, and lets its
// request be made again.
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
	if err := w.commit(); err != nil {
		return err
	}
	w.advance(200 * time.Millisecond)
	n.link.set(func() { n.link.target += w.pick(2) })
	if err := w.join(); err != nil {
		return err
	}
	w.advance(200 * time.Millisecond)
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

func (w *world) root() *node { return w.roots[w.pick(len(w.roots))] }

func (w *world) node() *node { return w.nodes[w.pick(len(w.nodes))] }

// other is a node that follows others; nil if there is none.
func (w *world) other() *node {
	others := w.nodes[len(w.roots):]
	if len(others) == 0 {
		return nil
	}
	return others[w.pick(len(others))]
}

// client is one that came by itself; nil if there is none.
func (w *world) client() *client {
	if len(w.clients) == 0 {
		return nil
	}
	return w.clients[w.pick(len(w.clients))]
}
