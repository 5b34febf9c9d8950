package histories

import (
	"fmt"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

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

// tell makes the upstream report its freshness.
func (w *world) tell() error {
	n, state := w.root(), oneOf(w.choices, stream.InSync, stream.Stale, stream.Resyncing)
	n.endpoint.Say(state, "says the upstream")
	w.say("the upstream reports to %s that it is %v", n.name, state)
	return nil
}

// vanish makes resources vanish without a trace.
func (w *world) vanish() error {
	if w.shape.deletes == streamtest.Vanishing {
		key := w.keys()[w.pick(len(w.keys()))]
		if w.upstream.Vanish(key) > 0 {
			w.say("%s vanishes at %d", key, w.upstream.Revision())
		}
	}
	return nil
}

// vanishApart makes a resource vanish that one root finds missing, and others only
// after more has happened.
func (w *world) vanishApart() error {
	if w.shape.deletes != streamtest.Vanishing {
		return nil
	}
	key := keys[w.pick(len(keys))]
	show := func() {
		for _, n := range w.roots {
			n.endpoint.Catch(-1)
		}
		w.settle()
	}
	w.upstream.Commit(1, streamtest.Write{Key: key, Value: w.value()})
	show()
	w.upstream.Vanish(key)
	n := w.root()
	n.endpoint.Poll()
	w.settle()
	w.upstream.Commit(1, streamtest.Write{Key: "z", Value: w.value()})
	show()
	w.say("%s vanishes, %s finds it missing, and more is written, up to %d", key, n.name, w.upstream.Revision())
	return nil
}

// poll makes an endpoint list the current keys.
func (w *world) poll() error {
	if w.shape.deletes == streamtest.Vanishing {
		n := w.root()
		n.endpoint.Poll()
		w.say("%s lists the current keys", n.name)
	}
	return nil
}

// restore takes the upstream back to an older state under a new name.
func (w *world) restore() error {
	if w.shape.guarded || !w.rarely(3) {
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

// restoreByStealth takes the upstream back under the same name, which is not
// allowed: the gateway has to detect it. It can, while the upstream stays behind the
// served state.
func (w *world) restoreByStealth() error {
	if !w.mayGoBack() || !w.rarely(3) {
		return nil
	}
	if err := w.level(); err != nil || !w.atHead() {
		return err
	}
	w.goBack()
	if err := w.level(); err != nil || w.rarely(2) {
		return err
	}
	n := w.root()
	n.endpoint.Foreign()
	w.say("%s has one connection to something else", n.name)
	w.advance(300 * time.Millisecond)
	return nil
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
	w.say("many writes, up to %d, and %s is shown all", w.upstream.Revision(), n.name)
	return nil
}

// rewrite changes every key in one transaction, which no endpoint shows.
func (w *world) rewrite() {
	var writes []streamtest.Write
	for _, key := range w.keys() {
		writes = append(writes, streamtest.Write{Key: key, Value: w.value()})
	}
	w.say("transaction %d: all keys", w.upstream.Commit(1, writes...))
}

// outage makes a root lose the upstream, which drops the changes meanwhile.
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
