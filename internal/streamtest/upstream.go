package streamtest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// DeleteRevisions is the kind of revision that an upstream gives a delete.
type DeleteRevisions uint8

// The kinds of upstreams.
const (
	// OwnRevision: a delete has the revision of its transaction (etcd).
	OwnRevision DeleteRevisions = iota
	// NoRevision: a delete has none, and moves nothing forward.
	NoRevision
	// LastSeen: a delete comes with the revision that the resource had when it
	// was last seen, and moves nothing forward (Consul).
	LastSeen
	// Vanishing: a delete has the revision of its transaction, but resources may
	// vanish as well, without a trace in the upstream's order. Each endpoint finds
	// them by listing the current keys; see [Upstream.Vanish] and [Replica.Poll]
	// (NATS).
	Vanishing
)

// Upstream is a whole upstream in memory, and its truth. Sources that follow it
// are made by [Upstream.Replica]. Safe for concurrent use.
type Upstream struct {
	// Static after construction.
	truth   *Truth
	deletes DeleteRevisions

	mu sync.Mutex // held while a transaction is made
}

// NewUpstream returns an upstream that is empty at revision 1 of an epoch.
func NewUpstream(epoch string, deletes DeleteRevisions) *Upstream {
	u := &Upstream{deletes: deletes}
	u.truth = NewTruth(u.named(epoch), 1)
	return u
}

// Truth returns the complete history of the upstream.
func (u *Upstream) Truth() *Truth { return u.truth }

// State returns the upstream's current state.
func (u *Upstream) State() State {
	_, last := u.truth.Newest()
	return last.After
}

// Revision returns the upstream's head.
func (u *Upstream) Revision() uint64 {
	_, last := u.truth.Newest()
	return last.Revision
}

// Oldest returns the revision of the oldest backup: where the newest revision
// order begins.
func (u *Upstream) Oldest() uint64 {
	newest, _ := u.truth.end()
	_, txns := u.truth.read(newest, 0, 1)
	return txns[0].Revision
}

// Commit makes one transaction, and returns its revision: step after the previous
// one, unless it holds only deletes and deletes have no revision. A delete of a key
// that does not exist is left out. Each key may be in it once.
func (u *Upstream) Commit(step uint64, writes ...Write) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, last := u.truth.Newest()
	revision := last.Revision
	if u.raises(writes) {
		revision += step
	}
	var changes []log.Change
	for _, w := range writes {
		if c, ok := u.change(w, revision, last.After); ok {
			changes = append(changes, c)
		}
	}
	u.truth.Append(revision, changes...)
	return revision
}

func (u *Upstream) raises(writes []Write) bool {
	return u.deletes == OwnRevision || u.deletes == Vanishing || slices.ContainsFunc(writes, func(w Write) bool { return !w.Delete })
}

func (u *Upstream) change(w Write, revision uint64, before State) (log.Change, bool) {
	r := stream.Resource{Key: w.Key, Revision: revision, Value: []byte(w.Value)}
	if !w.Delete {
		return log.Change{Resource: r}, true
	}
	old, ok := before[w.Key]
	r.Value = nil
	switch u.deletes {
	case NoRevision:
		r.Revision = 0
	case LastSeen:
		r.Revision = old.Revision
	}
	return log.Change{Resource: r, Deleted: true}, ok
}

// Vanish makes existing resources vanish, and returns their number.
func (u *Upstream) Vanish(keys ...string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	state := u.State()
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return state[key].Revision == 0 })
	if len(keys) > 0 {
		u.truth.Vanish(keys...)
	}
	return len(keys)
}

// named returns the name of an epoch of the upstream in watches.
func (u *Upstream) named(epoch string) string {
	if u.deletes == OwnRevision {
		return epoch
	}
	return stream.UnnumberedEpoch + epoch
}

// Restore takes the upstream back to a backup: the state as it was at a revision of
// the newest order, or at its oldest, in an order of that name that continues from
// there. Replicas switch to it by [Replica.Move].
func (u *Upstream) Restore(epoch string, revision uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	newest, _ := u.truth.end()
	_, txns := u.truth.read(newest, 0, max(u.truth.find(newest, revision), 1))
	u.truth.begin(u.named(epoch), txns[len(txns)-1])
}

// Replica returns a source that follows the upstream through an endpoint of its own,
// which shows everything that exists now and what [Replica.Catch] adds.
func (u *Upstream) Replica() *Replica {
	r := &Replica{upstream: u, changed: make(chan struct{}), cut: -1}
	r.epoch, r.shown = u.truth.end()
	return r
}

// end is the newest order and how many transactions it has.
func (t *Truth) end() (epoch, txns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.epochs) - 1
	return last, len(t.epochs[last].txns)
}

// read returns the name and the transactions of an order, from the n-th to one
// before the m-th.
func (t *Truth) read(epoch, n, m int) (name string, txns []Transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.epochs[epoch]
	return e.name, e.txns[n:min(m, len(e.txns))]
}

// find returns how many transactions of an order are not beyond a revision.
func (t *Truth) find(epoch int, revision uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epochs[epoch].count(revision)
}

// ValueOf returns JSON text that is different for each n.
func ValueOf(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

// Write is one write of a transaction.
type Write struct {
	Key    string
	Value  string // JSON text; unused for a delete
	Delete bool
}
