package streamtest

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// Truth is the complete history of an upstream: its revision orders, and the
// transactions of each. Safe for concurrent use.
type Truth struct {
	mu        sync.Mutex
	epochs    []*epoch
	traceless bool
	whole     *Truth // of which this is a part, with the same orders; nil: this is not a part
}

// epoch is one revision order. Its states are immutable once added.
type epoch struct {
	name string // the source's name for it
	// again: an earlier order had this name, as after a restore that the upstream
	// does not report. A gateway that serves it as an order of its own gives it its
	// own name.
	again  bool
	others []string // of a part: other names under which it is served
	txns   []Transaction
	keys   map[string][]Version // what each was, in order; append only
}

// Transaction has the changes of an upstream at one revision.
type Transaction struct {
	// Revision is that of its upserts and, where the upstream gives them one, of its
	// deletes. It is that of the previous transaction if the transaction holds only
	// deletes without a revision of their own.
	Revision uint64
	Changes  []log.Change
	// After is the complete state after it. It must not be modified.
	After State
	// Vanished means that the changes are unordered deletes: every replica finds
	// them by itself, sooner or later.
	Vanished bool

	resources map[string]stream.Resource // After, with the values in full
	newest    uint64                     // the greatest revision in After
	window    *window                    // nil: it is none
}

// NewTruth returns the truth of an upstream that is empty at a revision.
func NewTruth(epoch string, revision uint64) *Truth {
	t := &Truth{}
	t.begin(epoch, Transaction{Revision: revision})
	return t
}

// begin starts another revision order where a transaction ended, as a restore does.
// The name may be that of an earlier order: a broken contract that must be
// survived.
func (t *Truth) begin(name string, backup Transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := Transaction{Revision: backup.Revision, After: backup.After.Clone(), resources: maps.Clone(backup.resources)}
	e := newEpoch(name, []Transaction{first})
	e.again = slices.ContainsFunc(t.epochs, func(old *epoch) bool { return old.name == name })
	t.epochs = append(t.epochs, e)
}

// newEpoch is a revision order whose first transaction stands for all before it.
func newEpoch(name string, txns []Transaction) *epoch {
	e := &epoch{name: name, txns: txns, keys: map[string][]Version{}}
	for key, v := range txns[0].After {
		e.keys[key] = []Version{v}
	}
	for _, txn := range txns[1:] {
		e.note(txn)
	}
	return e
}

// Begin starts another revision order, empty at a revision, like an upstream that
// lost everything.
func (t *Truth) Begin(epoch string, revision uint64) {
	t.begin(epoch, Transaction{Revision: revision})
}

// Append adds a transaction to the newest revision order. Each key may be in it
// once.
func (t *Truth) Append(revision uint64, changes ...log.Change) {
	t.add(Transaction{Revision: revision, Changes: changes})
}

// Vanish adds unordered deletes without a revision: every replica finds them by
// itself. See [Transaction.Vanished].
func (t *Truth) Vanish(keys ...string) {
	_, last := t.Newest()
	txn := Transaction{Revision: last.Revision, Vanished: true}
	for _, key := range keys {
		txn.Changes = append(txn.Changes, log.Change{Resource: stream.Resource{Key: key}, Deleted: true})
	}
	t.add(txn)
}

func (t *Truth) add(txn Transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.epochs[len(t.epochs)-1]
	changes := txn.Changes
	txn.After = e.last().After.Clone()
	txn.resources = make(map[string]stream.Resource, len(txn.After)+len(changes))
	maps.Copy(txn.resources, e.last().resources)
	for _, c := range changes {
		if c.Deleted {
			delete(txn.After, c.Key)
			delete(txn.resources, c.Key)
			continue
		}
		txn.After[c.Key] = versionOf(c.Resource)
		txn.resources[c.Key] = c.Resource
	}
	for _, v := range txn.After {
		txn.newest = max(txn.newest, v.Revision)
	}
	e.txns = append(e.txns, txn)
	e.note(txn)
}

// Now returns a copy of the truth that no longer changes: a history must not be
// compared with a truth that drops transactions meanwhile.
func (t *Truth) Now() *Truth {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := &Truth{traceless: t.traceless, whole: t.whole}
	for _, e := range t.epochs {
		// The slices are append only, so that they can be shared up to here.
		now.epochs = append(now.epochs, &epoch{name: e.name, again: e.again, others: e.others, txns: e.txns, keys: maps.Clone(e.keys)})
	}
	return now
}

// Keep forgets all but the newest n transactions, so that a long run can continue:
// older states can no longer be checked. Revision orders without any transaction
// left are dropped as a whole, except the newest.
func (t *Truth) Keep(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.epochs) - 1; i >= 0; i-- {
		e := t.epochs[i]
		if n <= 0 && i < len(t.epochs)-1 {
			t.epochs = slices.Delete(t.epochs, 0, i+1)
			return
		}
		if kept := max(n, 1); len(e.txns) > kept {
			t.epochs[i] = newEpoch(e.name, slices.Clone(e.txns[len(e.txns)-kept:]))
			t.epochs[i].again, t.epochs[i].others = e.again, e.others
		}
		n -= len(e.txns)
	}
}

// Traceless declares that a list of the upstream has no revisions except those of
// its resources: a state from which the newest was deleted looks like an earlier
// one.
func (t *Truth) Traceless() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.traceless = true
}

// Newest returns the newest revision order's name and last transaction.
func (t *Truth) Newest() (epoch string, last Transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.epochs[len(t.epochs)-1]
	return e.name, e.last()
}

// At returns every state that the upstream had at a revision of an epoch as it
// is served: one, except where deletes without a revision of their own share
// it, or where several orders have the same name. Empty: the upstream was never
// at that revision.
func (t *Truth) At(served string, revision uint64) []State {
	var out []State
	for _, s := range t.claimed(claim{epoch: served, revision: revision}) {
		out = append(out, s.state)
	}
	return out
}

// Versions returns all versions of a key, in order, in the orders served under a
// name. A deletion is a Version without a value. The result must not be modified.
func (t *Truth) Versions(served, key string) []Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Version
	for _, e := range t.named(served) {
		if versions := e.keys[key]; out == nil {
			out = versions[:len(versions):len(versions)]
		} else {
			out = append(out, versions...)
		}
	}
	return out
}

// Changes returns how many changes are between two revisions of an epoch, the first
// excluded and the second included; of several orders with one name, the most.
func (t *Truth) Changes(served string, after, upTo uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := 0
	for _, e := range t.named(served) {
		n := 0
		for _, txn := range e.txns {
			if after <= txn.Revision && txn.Revision <= upTo {
				n += len(txn.Changes)
			}
		}
		most = max(most, n)
	}
	return most
}

// unseen reports whether this is the truth of a part, and a key vanished from all of the
// upstream, or changed there more than once between two revisions, the first excluded: a
// replica that sees only the last of these changes does not know what the part had in
// between. Behind a view, one change is enough. Where deletes have no revision of their own,
// one may share the first revision.
func (t *Truth) unseen(served, key string, after, upTo uint64, unnumbered, ofView bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.wholes(served), func(e *epoch) bool {
		return e.mayBeUnseen(key, after, upTo, unnumbered, ofView)
	})
}

// unseenChanges is how many changes the keys that are unseen had in all of the upstream.
func (t *Truth) unseenChanges(served string, after, upTo uint64, unnumbered, ofView bool) (most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.wholes(served) {
		n := 0
		for key := range e.keys {
			if e.mayBeUnseen(key, after, upTo, unnumbered, ofView) {
				n += e.changes(key, after, upTo, unnumbered)
			}
		}
		most = max(most, n)
	}
	return most
}

// wholes returns the orders of all of the upstream of which the named ones are parts: none if
// this is not the truth of a part.
func (t *Truth) wholes(served string) (out []*epoch) {
	whole := t.whole
	if whole == nil {
		return nil
	}
	for whole.whole != nil {
		whole = whole.whole
	}
	for i, e := range t.epochs {
		if e.servedAs(served) {
			out = append(out, whole.epochs[i])
		}
	}
	return out
}

func (e *epoch) mayBeUnseen(key string, after, upTo uint64, unnumbered, ofView bool) bool {
	least := 2
	if ofView {
		least = 1
	}
	return e.vanished(key) || e.changes(key, after, upTo, unnumbered) >= least
}

// changes is how many changes of a key are between two revisions, as in unseen.
func (e *epoch) changes(key string, after, upTo uint64, unnumbered bool) (n int) {
	for _, v := range e.keys[key] {
		if v.Revision > after && v.Revision <= upTo || unnumbered && v.Value == "" && v.Revision >= after {
			n++
		}
	}
	return n
}

// named returns the orders that an epoch in a position may name: the name, for the
// first order that had it, or the name with the gateway's suffix for an upstream
// that went back without a new name, for any of them.
func (t *Truth) named(served string) []*epoch {
	return slices.DeleteFunc(slices.Clone(t.epochs), func(e *epoch) bool {
		return !e.servedAs(served)
	})
}

func (e *epoch) servedAs(served string) bool {
	name := stream.CanonicalEpoch(e.name)
	if served == name {
		return !e.again
	}
	base, _, alias := strings.Cut(served, "~") // of an alias, the name may be cut short
	return alias && strings.HasPrefix(name, base) && len(base) >= min(len(name), aliased) || slices.Contains(e.others, served)
}

// aliased is how many bytes of a name a gateway keeps in an alias.
const aliased = 12

func (e *epoch) last() Transaction { return e.txns[len(e.txns)-1] }

// count is how many transactions are not beyond a revision.
func (e *epoch) count(revision uint64) int {
	n, _ := slices.BinarySearchFunc(e.txns, revision, func(txn Transaction, r uint64) int {
		if txn.Revision > r {
			return 1
		}
		return -1
	})
	return n
}

// note adds the versions of a transaction's keys.
func (e *epoch) note(txn Transaction) {
	for _, c := range txn.Changes {
		v := Version{Revision: txn.Revision}
		if !c.Deleted {
			v = txn.After[c.Key]
		}
		e.keys[c.Key] = append(e.keys[c.Key], v)
	}
}

// Narrow returns the truth of a part of the upstream, in orders with other names: the
// resources for which part returns true, as it returns them. One that leaves the part is
// deleted by the transaction that changed it.
//
// A gateway may serve an order under a name that it made up, from which a part has a name
// of its own. Those that it served are given, as they were served.
func (t *Truth) Narrow(name func(epoch string) string, part func(stream.Resource) (stream.Resource, bool), served ...string) *Truth {
	all := t.Now()
	out := &Truth{traceless: all.traceless, whole: all}
	for _, e := range all.epochs {
		first := Transaction{Revision: e.txns[0].Revision, After: State{}, resources: map[string]stream.Resource{}}
		for key, r := range e.txns[0].resources {
			if r, in := part(r); in {
				first.After[key], first.resources[key] = versionOf(r), r
				first.newest = max(first.newest, r.Revision)
			}
		}
		narrow := newEpoch(name(e.name), []Transaction{first})
		narrow.again = e.again
		for _, other := range served {
			if e.servedAs(other) && other != stream.CanonicalEpoch(e.name) {
				narrow.others = append(narrow.others, stream.CanonicalEpoch(name(other)))
			}
		}
		out.epochs = append(out.epochs, narrow)
		for _, txn := range e.txns[1:] {
			out.add(Transaction{Revision: txn.Revision, Changes: narrow.narrow(txn.Changes, part), Vanished: txn.Vanished})
		}
	}
	return out
}

// narrow returns what changes are for a part of the upstream.
func (e *epoch) narrow(changes []log.Change, part func(stream.Resource) (stream.Resource, bool)) (out []log.Change) {
	before := e.last().resources
	for _, c := range changes {
		if !c.Deleted {
			if r, in := part(c.Resource); in {
				out = append(out, log.Change{Resource: r})
				continue
			}
		}
		if _, in := before[c.Key]; in {
			out = append(out, log.Change{Resource: stream.Resource{Key: c.Key, Revision: c.Revision}, Deleted: true})
		}
	}
	return out
}
