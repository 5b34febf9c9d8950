package gateway_test

import (
	"context"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"testing"

	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestConformance runs the suite against a gateway.
func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		o := newOrigin(t)
		return o.harness(source(t, o.upstream(), "notes", ""))
	})
}

// origin is a gateway with a writable watch.
type origin struct {
	*node
	store *store.Store
	watch *watch.Watch
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{node: newNode(t)}
	o.wipe()
	return o
}

// wipe starts over with nothing, in another epoch.
func (o *origin) wipe() {
	o.t.Helper()
	o.kill()
	o.store = store.New(store.Config{})
	r := watch.NewRegistry()
	o.watch = add(o.t, r, "notes", o.store.Source("notes"))
	o.start(r)
	prime(o.t, o.watch)
}

func (o *origin) harness(s *gatewaysource.Source) *sourcetest.Harness {
	return &sourcetest.Harness{
		Source: s, Resumes: true,
		Put:        func(key, value string) error { return o.put(key, value) },
		Delete:     func(key string) error { return o.delete(key) },
		Disconnect: func() { o.cut(); o.serve() },
		Restart:    func() { o.cut(); o.serve() },
		Restore:    o.wipe,
	}
}

// put returns once the gateway has the value: a test then reads the new value
// there.
func (o *origin) put(key, value string) error {
	_, _, err := o.store.Writer("notes").Put(context.Background(), stream.PutRequest{Key: key, Value: []byte(value)})
	await(o.t, o.watch, func() bool {
		r, ok := o.watch.Snapshot().Get(key)
		return err != nil || ok && string(r.Value) == value
	})
	return err
}

func (o *origin) delete(key string) error {
	_, err := o.store.Writer("notes").Delete(context.Background(), stream.DeleteRequest{Key: key})
	await(o.t, o.watch, func() bool {
		_, ok := o.watch.Snapshot().Get(key)
		return !ok
	})
	return err
}

// TestConformanceWithTransactions has an upstream behind the gateway with
// transactions, and with or without revisions of deletes.
func TestConformanceWithTransactions(t *testing.T) {
	for name, deletes := range map[string]streamtest.DeleteRevisions{
		"own revision": streamtest.OwnRevision, "no revision": streamtest.NoRevision, "last seen": streamtest.LastSeen,
	} {
		t.Run("deletes with "+name, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
				return transactional(t, deletes)
			})
		})
	}
}

func transactional(t *testing.T, deletes streamtest.DeleteRevisions) *sourcetest.Harness {
	upstream := streamtest.NewUpstream("e", deletes)
	endpoint := upstream.Replica()
	n := newNode(t)
	r := watch.NewRegistry()
	w := add(t, r, "w", endpoint)
	n.start(r)
	caughtUp := func() {
		epoch, last := upstream.Truth().Newest()
		await(t, w, func() bool {
			v := w.Snapshot()
			return v.Epoch() == epoch && v.Revision() == last.Revision && v.Count() == len(last.After)
		})
	}
	caughtUp()
	commit := func(writes ...streamtest.Write) error {
		upstream.Commit(1, writes...)
		endpoint.Catch(-1)
		caughtUp()
		return nil
	}
	return &sourcetest.Harness{
		Source: source(t, n.upstream(), "w", ""), Resumes: true,
		Put:         func(key, value string) error { return commit(streamtest.Write{Key: key, Value: value}) },
		Delete:      func(key string) error { return commit(streamtest.Write{Key: key, Delete: true}) },
		Transaction: func(writes []streamtest.Write) error { return commit(writes...) },
		Disconnect:  func() { n.cut(); n.serve() },
		Restart:     func() { n.cut(); n.serve() },
		Restore: func() {
			upstream.Restore("restored", 0)
			endpoint.Move()
			caughtUp()
		},
	}
}
