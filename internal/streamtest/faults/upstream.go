package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// keys is how many resources there may be: few, so that they are changed, deleted
// and created again often.
const keys = 24

// upstream writes to the upstream, and records the resulting states: the truth. Safe
// for concurrent use.
type upstream struct {
	// Static after construction.
	rig    *Rig
	claims *claims // nil: the upstream has revisions

	mu     sync.Mutex // held while a write is under way
	orders []*order
	values int
}

// order is one revision order of the upstream.
type order struct {
	epoch string // as it is served; "" while that is not known
	txns  []transaction
	state streamtest.State
}

// transaction is one write, or the changes that a counting source found
// together.
type transaction struct {
	revision uint64
	changes  []log.Change
}

func (o *order) add(revision uint64, changes ...log.Change) {
	o.txns = append(o.txns, transaction{revision: revision, changes: changes})
	for _, c := range changes {
		e := stream.Event{Type: stream.Upsert, Resource: c.Resource}
		if c.Deleted {
			e.Type = stream.Delete
		}
		o.state.Apply(e)
	}
}

func newUpstream(r *Rig) *upstream {
	u := &upstream{rig: r, orders: []*order{{state: streamtest.State{}}}}
	if r.Counts {
		u.claims = &claims{}
	}
	return u
}

// run writes all the time until stop is closed. It finishes the write under way.
func (u *upstream) run(ctx context.Context, stop <-chan struct{}) error {
	for {
		timer := time.NewTimer(5*time.Millisecond + rand.N(15*time.Millisecond))
		select {
		case <-stop:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if _, err := u.write(ctx, stop); err != nil {
			return err
		}
	}
}

// write changes a random resource, or deletes it.
func (u *upstream) write(ctx context.Context, stop <-chan struct{}) (stream.Resource, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := u.rig.key(rand.IntN(keys))
	if _, there := u.now().state[key]; there && rand.IntN(3) == 0 {
		revision, err := u.rig.Delete(ctx, key)
		if err != nil {
			return stream.Resource{}, u.reconcile(ctx, stop, key, err)
		}
		u.note(revision, log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
		return stream.Resource{}, nil
	}
	return u.put(ctx, stop, key)
}

// mark writes one more resource, and returns it: a subscriber that has it has
// everything.
func (u *upstream) mark(ctx context.Context) (stream.Resource, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for ctx.Err() == nil {
		r, err := u.put(ctx, ctx.Done(), u.rig.key(keys))
		if err != nil || r.Key != "" {
			return r, err
		}
	}
	return stream.Resource{}, ctx.Err()
}

// put is called with mu held. The zero resource means that it is unknown whether it
// was written, but the current state is recorded.
func (u *upstream) put(ctx context.Context, stop <-chan struct{}, key string) (stream.Resource, error) {
	u.values++
	r, err := u.rig.Put(ctx, key, u.rig.value(u.values))
	if err != nil {
		return stream.Resource{}, u.reconcile(ctx, stop, key, err)
	}
	u.note(r.Revision, log.Change{Resource: r})
	return r, nil
}

func (u *upstream) now() *order { return u.orders[len(u.orders)-1] }

func (u *upstream) note(revision uint64, c log.Change) {
	o := u.now()
	if c.Deleted && revision == 0 && len(o.txns) > 0 {
		revision = o.txns[len(o.txns)-1].revision // it moves nothing forward
	}
	o.add(revision, c)
}

// reconcile determines the outcome of a failed write, once the upstream can be
// queried again. Everything else must be as it was.
func (u *upstream) reconcile(ctx context.Context, stop <-chan struct{}, key string, cause error) error {
	for {
		resources, revision, err := u.rig.List(ctx)
		if err == nil {
			return u.compare(resources, revision, key)
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("the upstream did not come back: %w; then: %w", cause, err)
		case <-stop:
			timer.Stop()
			return fmt.Errorf("the upstream was not back at the end: %w; then: %w", cause, err)
		case <-timer.C:
		}
	}
}

// compare records the outcome for one key, and requires the rest to be as recorded.
func (u *upstream) compare(resources []stream.Resource, revision uint64, key string) error {
	listed, one := stateOf(resources), stream.Resource{}
	for _, r := range resources {
		if r.Key == key {
			one = r
		}
	}
	known := u.now().state
	switch {
	case listed[key] == known[key]:
	case one.Key == "":
		u.note(revision, log.Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
	default:
		u.note(one.Revision, log.Change{Resource: one})
	}
	if diff := listed.Diff(known); diff != "" {
		return fmt.Errorf("queried directly, the upstream does not have the writes (it lost what it had acknowledged, or a write of the rig that was given up was made later): %s", diff)
	}
	return nil
}

// check compares the upstream, queried directly, with the writes, and with the
// claims of a counting source.
func (u *upstream) check(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	resources, revision, err := u.rig.List(ctx)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if err := u.compare(resources, revision, ""); err != nil || u.claims == nil {
		return err
	}
	return u.claims.hold(u.orders)
}

// wipe makes the upstream lose its content, with no write under way. Its content
// then, as after restoring a backup, is the start of the next order.
func (u *upstream) wipe(ctx context.Context, inject func() error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := inject(); err != nil {
		return err
	}
	resources, revision, err := u.rig.List(ctx)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	var changes []log.Change
	for _, r := range resources {
		changes = append(changes, log.Change{Resource: r})
	}
	o := &order{state: streamtest.State{}}
	if len(changes) > 0 {
		o.add(revision, changes...)
	}
	u.orders = append(u.orders, o)
	return nil
}

// name records the epoch under which the newest order is served.
func (u *upstream) name(epoch string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	o := u.now()
	switch {
	case o.epoch == "":
		o.epoch = epoch
	case o.epoch != epoch:
		return fmt.Errorf("epoch %q became %q, and the upstream lost nothing", o.epoch, epoch)
	}
	return nil
}

// served returns the orders that subscribers see.
func (u *upstream) served() []*order {
	if u.claims == nil {
		return u.orders
	}
	u.claims.mu.Lock()
	defer u.claims.mu.Unlock()
	var orders []*order
	for _, o := range u.claims.orders { // the source may continue to claim
		orders = append(orders, &order{epoch: o.epoch, txns: slices.Clone(o.txns), state: o.state.Clone()})
	}
	return orders
}

// truth returns the writes, for the checkers.
func (u *upstream) truth() *streamtest.Truth {
	u.mu.Lock()
	defer u.mu.Unlock()
	orders := u.served()
	t := streamtest.NewTruth(orders[0].epoch, 0)
	if unnumbered(u.rig.Source) {
		t.Traceless()
	}
	for i, o := range orders {
		if i > 0 {
			t.Begin(o.epoch, 0)
		}
		for _, txn := range o.txns {
			t.Append(txn.revision, txn.changes...)
		}
	}
	return t
}

// versionOf is the version after a change; none for a delete.
func versionOf(c log.Change) streamtest.Version {
	if c.Deleted {
		return streamtest.Version{}
	}
	return stateOf([]stream.Resource{c.Resource})[c.Key]
}

func stateOf(resources []stream.Resource) streamtest.State {
	s := streamtest.State{}
	for _, r := range resources {
		s.Apply(stream.Event{Type: stream.Upsert, Resource: r})
	}
	return s
}
