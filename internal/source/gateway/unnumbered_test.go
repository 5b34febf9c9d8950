package gateway_test

import (
	"context"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Trees of gateways over upstreams that give deletes no revision.

// Two gateways follow a third one, and one of them is cut off while a resource is
// written and another one deleted: it gets both at once. A client that saw only
// one of the changes connects to it.
func TestUnnumberedDeleteWhileAGatewayIsCutOff(t *testing.T) {
	for name, deletes := range map[string]streamtest.DeleteRevisions{
		"last seen": streamtest.LastSeen, "none": streamtest.NoRevision, "own": streamtest.OwnRevision,
	} {
		t.Run(name, func(t *testing.T) {
			upstream := streamtest.NewUpstream("e", deletes)
			endpoint := upstream.Replica()
			write := func(w streamtest.Write) {
				upstream.Commit(1, w)
				endpoint.Catch(-1)
			}
			write(streamtest.Write{Key: "j", Value: streamtest.ValueOf(1)})
			registry := watch.NewRegistry()
			add(t, registry, "w", endpoint)
			root := newNode(t)
			root.start(registry)
			one, _ := follower(t, registry)
			two, door := follower(t, registry)
			reach := func(w *watch.Watch) {
				t.Helper()
				await(t, w, func() bool {
					return w.Snapshot().Revision() >= upstream.Revision() && w.Snapshot().Count() == len(upstream.State())
				})
			}
			reach(two)
			write(streamtest.Write{Key: "x", Value: streamtest.ValueOf(1)})
			reach(one)
			reach(two)
			door.cut()
			write(streamtest.Write{Key: "k", Value: streamtest.ValueOf(1)})
			reach(one)
			h := &streamtest.History{Truth: upstream.Truth(), DeletesUnnumbered: deletes != streamtest.OwnRevision}
			c := h.Connect(one, streamtest.Dial{Client: "c", Replica: "one", Slow: true})
			c.Drain()
			c.Close()
			write(streamtest.Write{Key: "j", Delete: true})
			door.serve()
			reach(two)
			c = h.Connect(two, streamtest.Dial{Client: "c", Replica: "two", Slow: true, From: last(c.Marks())})
			c.Drain()
			c.Close()
			if diff := c.State().Diff(upstream.State()); diff != "" {
				t.Errorf("%s\n%s", diff, c.Describe())
			}
			if err := streamtest.CheckAll(h); err != nil {
				t.Error(err)
			}
		})
	}
}

// follower is a gateway that follows a registry through its own port, by which it
// can be cut off.
func follower(t *testing.T, upstream *watch.Registry) (*watch.Watch, *node) {
	t.Helper()
	door := newNode(t)
	door.start(upstream)
	registry := watch.NewRegistry()
	t.Cleanup(func() {
		registry.Close()
		door.cut()
		door.registry = nil // it belongs to another
	})
	return add(t, registry, "w", source(t, door.upstream(), "w", "")), door
}

// scripted is a source that follows a script, step by step.
type scripted chan func(sink stream.Sink) error

func (s scripted) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	for {
		select {
		case step := <-s:
			if err := step(sink); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// does commits at a revision, with deletes complete to another one.
func (s scripted) does(revision, deletesTo uint64, changes func(sink stream.Sink) error) {
	done := make(chan struct{})
	s <- func(sink stream.Sink) error {
		defer close(done)
		if err := changes(sink); err != nil {
			return err
		}
		sink.DeletesCompleteTo(deletesTo)
		return sink.Commit(revision)
	}
	<-done
}

func put(key string, revision uint64) func(stream.Sink) error {
	return func(sink stream.Sink) error {
		return sink.Upsert(stream.Resource{Key: key, Revision: revision, Value: []byte("1")})
	}
}

// Two gateways look for deletes at different moments. A client moves from the
// one that has not looked to the one that has.
func TestUnnumberedDeletesFoundOutOfPhase(t *testing.T) {
	roots, registries := []scripted{make(scripted), make(scripted)}, []*watch.Registry{}
	for _, s := range roots {
		r := watch.NewRegistry()
		t.Cleanup(r.Close)
		w := add(t, r, "w", s)
		registries = append(registries, r)
		s.does(6, 6, func(sink stream.Sink) error {
			if err := sink.Reset("_e"); err != nil {
				return err
			}
			if err := put("j", 5)(sink); err != nil {
				return err
			}
			return put("x", 6)(sink)
		})
		s.does(9, 9, put("k", 9))
		await(t, w, func() bool { return w.Snapshot().Revision() == 9 })
	}
	// j is deleted by now: the second one looks, and the first one does not.
	for _, s := range roots {
		s.does(10, 9, put("y", 10))
	}
	roots[1].does(10, 10, func(sink stream.Sink) error { return sink.Delete("j", 0) })
	for i, s := range roots {
		s.does(12, uint64(9+i), put("z", 12))
	}
	above, door := follower(t, registries[0])
	await(t, above, func() bool { return above.Snapshot().Revision() == 12 })
	at := func() string {
		p := above.Snapshot().Position()
		p.Run = 0
		return p.String()
	}
	if got := at(); got != "w@_e-12!3" || above.Snapshot().Count() != 5 {
		t.Errorf("the gateway above is at %s with %d resources, want w@_e-12!3 with 5", got, above.Snapshot().Count())
	}
	door.cut()
	door.registry = registries[1]
	door.serve()
	await(t, above, func() bool { return at() == "w@_e-12!2" })
	if _, ghost := above.Snapshot().Get("j"); ghost || above.Stats().Resyncs["reconnect"] != 0 {
		t.Errorf("j is there: %t; resyncs: %v, want none but the first", ghost, above.Stats().Resyncs)
	}
}
