package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Replica is a copy of a watch, or of a part of one, that follows a stream. What it shows is always
// a state that the upstream had: changes become visible together at the end of a transaction, a
// snapshot or a catch-up, and the state before it is shown until then.
//
// All methods may be called from any goroutine.
type Replica[V any] struct {
	// Static after construction.
	watch  string
	decode func(Resource) (V, error)
	close  context.CancelFunc
	ready  chan struct{} // closed when there is something to show
	done   chan struct{} // closed when the stream has ended

	mu        sync.Mutex // guards the following fields
	values    map[string]row[V]
	ids       []string  // of values, in order; nil: to be computed
	revision  string    // of values
	position  string    // an ID at which values were complete; empty: there is none
	digest    digest    // of values
	verified  time.Time // when values were last found to be those of the server
	freshness Freshness
	progress  Progress
	changed   chan struct{} // closed at the next change
	err       error         // why the stream has ended

	arrived[V]
}

// arrived is what a Replica has and does not show yet.
type arrived[V any] struct {
	cleared  bool // by a reset: values are to be replaced
	upserts  map[string]row[V]
	deletes  map[string]struct{}
	reached  string // the newest revision
	loading  bool   // until end_of_snapshot: a snapshot, or what follows a resume
	skipping bool   // until the next bookmark or end_of_snapshot: the server said that it skips values
}

// row is the value of a resource, and the hash of what it was made of.
type row[V any] struct {
	value V
	hash  uint64
}

// Freshness is how fresh what a Replica shows is.
type Freshness struct {
	State State
	// Since is when the state began; zero: unknown.
	Since time.Time
	// Reason is a sentence for a person, or empty.
	Reason string
}

// Progress is how far a Replica has come with what it does not show yet.
type Progress struct {
	// Complete reports whether there was a complete snapshot since the last reset.
	Complete bool
	// Pending reports that more has arrived than is shown: a transaction, a snapshot or a catch-up has not ended.
	Pending bool
	// Arrived is how many resources of the snapshot have arrived. 0 if Complete.
	Arrived int
}

// Replica follows a watch until ctx ends, or the replica is closed. If the stream ends for
// another reason, Err has it.
func (c *Client) Replica(ctx context.Context, watch string, options ...WatchOption) *Replica[Resource] {
	return replicaOf(ctx, c, watch, asItIs, options)
}

// ReplicaOf is like [Client.Replica], with values that are decoded from their JSON. A value that
// cannot be decoded ends it.
func ReplicaOf[V any](ctx context.Context, c *Client, watch string, options ...WatchOption) *Replica[V] {
	return replicaOf(ctx, c, watch, func(r Resource) (v V, err error) { return v, json.Unmarshal(r.Value, &v) }, options)
}

func replicaOf[V any](ctx context.Context, c *Client, watch string, decode func(Resource) (V, error), options []WatchOption) *Replica[V] {
	r := newReplica(watch, decode)
	ctx, r.close = context.WithCancel(ctx)
	go func() {
		defer r.close()
		var err error
		options := append([]WatchOption{verifying(c, r)}, options...)
		for e, ended := range c.Watch(ctx, watch, options...) {
			if err = ended; err == nil {
				err = r.Apply(e)
			}
			if err != nil {
				break
			}
		}
		r.end(err)
	}()
	return r
}

// NewReplica returns a replica without a stream of its own, for the events of one that several
// watches share. Apply is its only source.
func NewReplica(watch string) *Replica[Resource] { return newReplica(watch, asItIs) }

func asItIs(r Resource) (Resource, error) { return r, nil }

func newReplica[V any](watch string, decode func(Resource) (V, error)) *Replica[V] {
	r := &Replica[V]{
		watch: watch, decode: decode, ready: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{}),
		values: map[string]row[V]{}, arrived: arrived[V]{upserts: map[string]row[V]{}, deletes: map[string]struct{}{}, loading: true},
		freshness: Freshness{State: Connecting}, progress: Progress{Pending: true},
	}
	r.close = sync.OnceFunc(func() { r.end(nil) })
	return r
}

// Apply applies an event of [Client.Watch]. Those of other watches only say, by their ID, that a
// transaction has ended. An error is that of a value that cannot be decoded.
func (r *Replica[V]) Apply(e Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Watch == r.watch || e.Watch == "" {
		if err := r.apply(e); err != nil {
			return fmt.Errorf("watch %s: the value of %q: %w", r.watch, e.Key, err)
		}
	}
	if e.Digest != "" && e.Watch == r.watch && r.pendingDigest().String() == e.Digest {
		r.verified = time.Now()
	}
	settled := !r.loading && !r.skipping
	if e.ID != "" && settled {
		r.show()
		r.position = e.ID
	}
	r.progress.Pending = !settled || len(r.upserts)+len(r.deletes) > 0
	r.progress.Arrived = 0
	if !r.progress.Complete {
		r.progress.Arrived = len(r.upserts)
	}
	return nil
}

// apply applies an event of the watch, or of the stream. r.mu is held.
func (r *Replica[V]) apply(e Event) error {
	switch e.Type {
	case Hello:
		// What follows a resume is consistent again at its end_of_snapshot. A bookmark before
		// that is only progress.
		r.loading, r.skipping = true, false
		r.refresh(Freshness{State: InSync})
	case Reset:
		r.cleared, r.loading, r.skipping = true, true, false
		clear(r.upserts)
		clear(r.deletes)
		r.progress.Complete = false
		r.reached = "" // from here on, revisions may be of another order
	case Upsert:
		v, err := r.decode(e.Resource)
		if err != nil {
			return err
		}
		id := e.Resource.ID()
		r.upserts[id] = row[V]{v, e.Resource.hash()}
		delete(r.deletes, id)
		r.reach(e.Revision)
	case Delete:
		id := e.Resource.ID()
		delete(r.upserts, id)
		r.deletes[id] = struct{}{}
		r.reach(e.Revision)
	case EndOfSnapshot:
		r.loading, r.skipping = false, false
		r.progress.Complete = true
		r.reached = e.Revision
	case Bookmark:
		r.skipping = false
		r.reach(e.Revision)
	case Status:
		r.refresh(Freshness{State: e.State, Since: e.Since, Reason: string(e.Reason)})
		r.skipping = r.skipping || e.State == CatchingUp
	}
	return nil
}

// refresh replaces the freshness. r.mu is held.
func (r *Replica[V]) refresh(f Freshness) {
	if f.State == Offline && r.freshness.State == Offline {
		f.Since = r.freshness.Since // the same disconnection continues
	}
	if f != r.freshness {
		r.freshness = f
		r.signal()
	}
}

// show makes visible what has arrived. r.mu is held.
func (r *Replica[V]) show() {
	if !r.cleared && len(r.upserts)+len(r.deletes) == 0 && r.revision == r.reached {
		return
	}
	r.digest = r.pendingDigest()
	if r.cleared {
		r.values, r.ids = map[string]row[V]{}, nil
	}
	for id := range r.deletes {
		if _, known := r.values[id]; known {
			delete(r.values, id)
			r.ids = nil
		}
	}
	for id, v := range r.upserts {
		if _, known := r.values[id]; !known {
			r.ids = nil
		}
		r.values[id] = v
	}
	r.cleared, r.upserts, r.deletes = false, map[string]row[V]{}, map[string]struct{}{}
	r.revision = r.reached
	select {
	case <-r.ready:
	default:
		close(r.ready)
	}
	r.signal()
}

// reach records the revision of an event. It may be older than what was reported before: where
// deletes have no revision of their own, a delete may show that of the resource's last version.
func (r *Replica[V]) reach(revision string) {
	if n := cmp.Compare(len(revision), len(r.reached)); n > 0 || n == 0 && revision > r.reached {
		r.reached = revision
	}
}

// signal tells everybody who waits for a change. r.mu is held.
func (r *Replica[V]) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// end records that the stream has ended.
func (r *Replica[V]) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := Freshness{State: Closed, Since: time.Now()}
	if err != nil {
		f.Reason = err.Error()
	}
	r.err = err
	r.refresh(f)
	close(r.done)
}

// Close ends the stream, and waits for its end. What was shown last stays.
func (r *Replica[V]) Close() {
	r.close()
	<-r.done
}

// Ready waits for something to show: the first complete snapshot. An error is why there will be
// none, or why ctx has ended.
func (r *Replica[V]) Ready(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	default:
	}
	select {
	case <-r.ready:
		return nil
	case <-r.done:
		return cmp.Or(r.Err(), errCut)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Changed returns a channel that is closed at the next change of the resources or of the
// freshness. So it is asked for before what may change is read.
func (r *Replica[V]) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Get returns the value of the resource with the ID, which is the key unless that is in base64.
func (r *Replica[V]) Get(id string) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held, ok := r.values[id]
	return held.value, ok
}

// Len returns the number of resources.
func (r *Replica[V]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.values)
}

// All returns the values by their IDs, in order. All of one iteration are of the same state.
func (r *Replica[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		ids, values := r.sorted()
		for i, id := range ids {
			if !yield(id, values[i]) {
				return
			}
		}
	}
}

// sorted returns the IDs in order, and their values.
func (r *Replica[V]) sorted() ([]string, []V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = slices.SortedFunc(maps.Keys(r.values), CompareIDs)
	}
	values := make([]V, len(r.ids))
	for i, id := range r.ids {
		values[i] = r.values[id].value
	}
	return r.ids, values
}

// Revision returns that of what is shown; empty: there is nothing yet.
func (r *Replica[V]) Revision() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision
}

// Freshness returns how fresh what is shown is.
func (r *Replica[V]) Freshness() Freshness {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.freshness
}

// Progress returns how far it has come with what is not shown yet.
func (r *Replica[V]) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// Err returns why the stream has ended; nil: it has not, or it was UntilEndOfSnapshot.
func (r *Replica[V]) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// CompareIDs orders the IDs of resources as a person would: whole numbers by their
// size, before all others, which are in byte order.
func CompareIDs(a, b string) int {
	x, y := isNumber(a), isNumber(b)
	switch {
	case x && y && len(a) != len(b):
		return cmp.Compare(len(a), len(b))
	case x == y:
		return strings.Compare(a, b)
	case x:
		return -1
	}
	return 1
}

// isNumber reports whether an ID is a whole number, written without unneeded zeros.
func isNumber(id string) bool {
	for i := range len(id) {
		if id[i] < '0' || id[i] > '9' {
			return false
		}
	}
	return id == "0" || id != "" && id[0] != '0'
}
