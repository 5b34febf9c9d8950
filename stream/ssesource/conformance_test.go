package ssesource_test

import (
	"context"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/ssesource"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/streamtest"
)

// TestConformance puts the source through the suite against a gateway.
func TestConformance(t *testing.T) {
	streamtest.RunConformance(t, func(t *testing.T) *streamtest.Harness {
		o := newOrigin(t)
		return o.harness(source(t, o.upstream(), "notes", ""))
	})
}

// origin is a gateway with a writable watch.
type origin struct {
	*node
	store *store.Store
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{node: newNode(t)}
	o.wipe()
	return o
}

// wipe begins anew with nothing, in another epoch.
func (o *origin) wipe() {
	o.t.Helper()
	o.kill()
	o.store = store.New(store.Config{})
	r := stream.NewRegistry()
	if _, err := r.Add(stream.WatchConfig{Name: "notes", Source: o.store.Source("notes"), Writer: o.store.Writer("notes")}); err != nil {
		o.t.Fatal(err)
	}
	o.start(r)
}

func (o *origin) harness(s *ssesource.Source) *streamtest.Harness {
	return &streamtest.Harness{
		Source: s, Resumes: true,
		Put:        func(key, value string) error { return o.put(key, value) },
		Delete:     func(key string) error { return o.delete(key) },
		Disconnect: func() { o.cut(); o.serve() },
		Restart:    func() { o.cut(); o.serve() },
		Restore:    o.wipe,
	}
}

func (o *origin) put(key, value string) error {
	_, _, err := o.store.Writer("notes").Put(context.Background(), stream.PutRequest{Key: key, Value: []byte(value)})
	return err
}

func (o *origin) delete(key string) error {
	_, err := o.store.Writer("notes").Delete(context.Background(), stream.DeleteRequest{Key: key})
	return err
}

// TestConformanceWithTransactions has an upstream behind the gateway that makes
// transactions, and gives deletes a revision or not.
func TestConformanceWithTransactions(t *testing.T) {
	for name, deletes := range map[string]streamtest.DeleteRevisions{
		"own revision": streamtest.OwnRevision, "no revision": streamtest.NoRevision, "last seen": streamtest.LastSeen,
	} {
		t.Run("deletes with "+name, func(t *testing.T) {
			streamtest.RunConformance(t, func(t *testing.T) *streamtest.Harness {
				return transactional(t, deletes)
			})
		})
	}
}

func transactional(t *testing.T, deletes streamtest.DeleteRevisions) *streamtest.Harness {
	upstream := streamtest.NewUpstream("e", deletes)
	endpoint := upstream.Replica()
	n := newNode(t)
	r := stream.NewRegistry()
	add(t, r, "w", endpoint)
	n.start(r)
	commit := func(writes ...streamtest.Write) error {
		upstream.Commit(1, writes...)
		endpoint.Catch(-1)
		return nil
	}
	return &streamtest.Harness{
		Source: source(t, n.upstream(), "w", ""), Resumes: true,
		Put:         func(key, value string) error { return commit(streamtest.Write{Key: key, Value: value}) },
		Delete:      func(key string) error { return commit(streamtest.Write{Key: key, Delete: true}) },
		Transaction: func(writes []streamtest.Write) error { return commit(writes...) },
		Disconnect:  func() { n.cut(); n.serve() },
		Restart:     func() { n.cut(); n.serve() },
		Restore: func() {
			upstream.Restore("restored", 0)
			endpoint.Move()
		},
	}
}
