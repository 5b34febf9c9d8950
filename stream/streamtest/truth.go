package streamtest

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/watchtide/watchtide/stream"
)

// Truth is everything that an upstream ever was: its revision orders, and in
// each of them its transactions. Safe for concurrent use.
type Truth struct {
	mu        sync.Mutex
	epochs    []*epoch
	traceless bool
}

// epoch is one revision order. The states are immutable once they are there.
type epoch struct {
	name string // as the source says it
	txns []Transaction
}

// Transaction is what an upstream changed at one revision.
type Transaction struct {
	// Revision is that of its upserts and, where the upstream gives them one,
	// of its deletes. The same as that of the transaction before where it
	// holds nothing but deletes without a revision of their own.
	Revision uint64
	Changes  []stream.Change
	// After is the whole state that it left. Not to be changed.
	After State

	resources map[string]stream.Resource // After, with the values in full
	newest    uint64                     // the greatest revision in After
}

// NewTruth returns the truth of an upstream that is empty at a revision.
func NewTruth(epoch string, revision uint64) *Truth {
	t := &Truth{}
	t.begin(epoch, Transaction{Revision: revision})
	return t
}

// begin begins another revision order where a transaction ended, as a restore
// does. The name may be the one of an earlier order: a broken promise that must
// be survived.
func (t *Truth) begin(name string, backup Transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := Transaction{Revision: backup.Revision, After: backup.After.Clone(), resources: maps.Clone(backup.resources)}
	t.epochs = append(t.epochs, &epoch{name: name, txns: []Transaction{first}})
}

// Begin begins another revision order, empty at a revision, as an upstream does
// that lost everything.
func (t *Truth) Begin(epoch string, revision uint64) {
	t.begin(epoch, Transaction{Revision: revision})
}

// Append adds a transaction to the newest revision order. Each key may stand in
// it once.
func (t *Truth) Append(revision uint64, changes ...stream.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.epochs[len(t.epochs)-1]
	txn := Transaction{Revision: revision, Changes: changes, After: e.last().After.Clone()}
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
}

// Traceless says that a list of the upstream has no revision but those of what is
// in it: a state from which the newest was deleted looks like an earlier one.
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

// At returns every state that counts as the one at a revision of an epoch as it
// is served: one, except where deletes without a revision of their own share
// it, or where several orders have the same name. Empty: the upstream was never
// there.
func (t *Truth) At(served string, revision uint64) []State {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []State
	for _, e := range t.named(served) {
		out = append(out, e.at(revision)...)
		if t.traceless {
			out = append(out, e.likeAt(revision)...)
		}
	}
	return out
}

// Versions returns everything that a key was, in order, in the orders that are
// served by a name. A deletion is a Version without a value.
func (t *Truth) Versions(served, key string) []Version {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Version
	for _, e := range t.named(served) {
		out = append(out, e.versions(key)...)
	}
	return out
}

// Changes returns how many changes lie between two revisions of an epoch, the
// first excluded and the second included; of several orders with one name, the
// most.
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

// named returns the orders that may be meant by an epoch in a position: the
// name, or the name with what the gateway adds when an upstream went back
// without a new name, or for the part of a watch that a prefix narrows it to.
func (t *Truth) named(served string) []*epoch {
	return slices.DeleteFunc(slices.Clone(t.epochs), func(e *epoch) bool {
		return !servedAs(served, e.name)
	})
}

func servedAs(served, name string) bool {
	name = stream.CanonicalEpoch(name)
	return served == name || strings.HasPrefix(served, name+"~") || strings.HasPrefix(served, name+".")
}

func (e *epoch) last() Transaction { return e.txns[len(e.txns)-1] }

func (e *epoch) at(revision uint64) []State {
	end := e.count(revision)
	if end == 0 {
		return nil
	}
	start := end - 1
	for start > 0 && e.txns[start-1].Revision == e.txns[end-1].Revision {
		start--
	}
	var out []State
	for _, txn := range e.txns[start:end] {
		out = append(out, txn.After)
	}
	return out
}

// likeAt are the later states that hold nothing newer.
func (e *epoch) likeAt(revision uint64) (out []State) {
	for _, txn := range e.txns[e.count(revision):] {
		if txn.newest <= revision {
			out = append(out, txn.After)
		}
	}
	return out
}

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

func (e *epoch) versions(key string) []Version {
	var out []Version
	if v, ok := e.txns[0].After[key]; ok {
		out = append(out, v)
	}
	for _, txn := range e.txns[1:] {
		for _, c := range txn.Changes {
			switch {
			case c.Key != key:
			case c.Deleted:
				out = append(out, Version{Revision: txn.Revision})
			default:
				out = append(out, txn.After[key])
			}
		}
	}
	return out
}
