package streamtest

import (
	"slices"

	"github.com/watchtide/watchtide/internal/log"
)

// claim is what an id or an event implies about the state of a subscriber.
type claim struct {
	epoch    string
	revision uint64
	// deletesTo is the revision up to which unordered deletes are complete: every one
	// that happened while the upstream was before it.
	deletesTo uint64
	// mixed means that the state was made at two replicas, one after the other,
	// inside a snapshot or a catch-up. Each of the deletes that share the revision
	// may then be known or not.
	mixed bool
}

// claimed is a state for which a claim is true.
type claimed struct {
	state State
	// either has the keys that may still be held, or be gone as in state.
	either State
	window *window // nil: it is the state of none
}

// claimed returns every state for which a claim is true. It is empty if the upstream
// was never there.
func (t *Truth) claimed(c claim) []claimed {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []claimed
	for _, e := range t.named(c.epoch) {
		out = append(out, e.claimed(c)...)
		if t.traceless {
			out = append(out, e.likeAt(c.revision)...)
		}
	}
	return out
}

func (e *epoch) claimed(c claim) []claimed {
	end := e.count(c.revision)
	if end == 0 {
		return nil
	}
	c.mixed = c.mixed && e.txns[end-1].window == nil // a window is resumed by those who have one of its states only
	last := claimed{state: e.txns[end-1].After, either: e.mayRemain(c, end), window: e.txns[end-1].window}
	out := []claimed{last}
	for start := end - 1; start > 0 && e.txns[start-1].Revision == e.txns[end-1].Revision && !e.txns[start].Vanished; start-- {
		before := e.txns[start-1].After
		if c.mixed {
			last.still(e.txns[start].Changes, before, nil)
			continue
		}
		out = append(out, claimed{state: before, either: last.either, window: e.txns[start-1].window})
	}
	if c.mixed {
		return []claimed{last}
	}
	return out
}

// still allows deleted keys to be held as they were before, except for keys that
// were changed since.
func (c *claimed) still(deleted []log.Change, before State, since map[string]bool) {
	for _, d := range deleted {
		v, was := before[d.Key]
		if !was || since[d.Key] {
			continue
		}
		if c.either == nil {
			c.either = State{}
		}
		c.either[d.Key] = v
	}
}

// mayRemain are the keys that vanished up to a position, and may not have been
// noticed.
func (e *epoch) mayRemain(c claim, end int) State {
	var out claimed
	since := map[string]bool{}
	for i := end - 1; i > 0 && e.txns[i].Revision >= c.deletesTo; i-- {
		if e.txns[i].Vanished {
			out.still(e.txns[i].Changes, e.txns[i-1].After, since)
		}
		for _, change := range e.txns[i].Changes {
			since[change.Key] = true
		}
	}
	return out.either
}

// vanished reports whether a key ever vanished in the orders served under a name.
func (t *Truth) vanished(served, key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.named(served), func(e *epoch) bool { return e.vanished(key) })
}

func (e *epoch) vanished(key string) bool {
	of := func(c log.Change) bool { return c.Key == key }
	return slices.ContainsFunc(e.txns, func(txn Transaction) bool {
		return txn.Vanished && slices.ContainsFunc(txn.Changes, of)
	})
}

// likeAt returns the later states that hold nothing newer.
func (e *epoch) likeAt(revision uint64) (out []claimed) {
	for _, txn := range e.txns[e.count(revision):] {
		if txn.newest <= revision {
			out = append(out, claimed{state: txn.After, window: txn.window})
		}
	}
	return out
}

// counts reports whether a claimed state may have n resources.
func (c claimed) counts(n int) bool {
	return len(c.state) <= n && n <= len(c.state)+len(c.either)
}

// toward returns the claimed state, with its open keys as they are held.
func (c claimed) toward(held State) State {
	want, copied := c.state, false
	for key, v := range c.either {
		if held[key] != v {
			continue
		}
		if !copied {
			want, copied = want.Clone(), true
		}
		want[key] = v
	}
	return want
}
