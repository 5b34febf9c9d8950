//go:build servers

package postgres

import (
	"maps"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// client moves between replicas.
type client struct {
	t        *testing.T
	holds    map[string]string
	position *stream.Position // nil: from nothing
}

// visit reads everything that a replica has.
func (c *client) visit(w *watch.Watch) log.ResumeOutcome {
	c.t.Helper()
	s := w.Subscribe(log.SubscribeOptions{Resume: c.position})
	defer s.Close()
	var b log.Batch
	for !s.Synced() {
		for s.Next(&b) {
			for e := range b.Events() {
				switch e.Type {
				case stream.Reset:
					c.holds = map[string]string{}
				case stream.Upsert:
					c.holds[e.Resource.Key] = string(e.Resource.Value)
				case stream.Delete:
					delete(c.holds, e.Resource.Key)
				}
			}
		}
		if !s.Synced() {
			<-s.Changed()
		}
	}
	p, _ := s.Position()
	c.position = &p
	return s.Outcome()
}

// TestReplicas: replicas number the rows of their snapshots differently, and agree on all changes after
// them, so a client that follows one resumes at the other.
func TestReplicas(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec(put("a", item("a", "1")) + ";" + put("b", item("b", "1")))
	registry := watch.NewRegistry()
	defer registry.Close()
	replica := func(name string) *watch.Watch {
		w, err := registry.Add(watch.Config{Name: "w" + name, Source: d.source(d.server.Addr(), Table{Name: "items"})})
		if err != nil {
			t.Fatal(err)
		}
		awaitWatch(t, w, "in sync", func() bool { return w.Status().State == stream.InSync })
		return w
	}
	first := replica("1")
	early := &client{t: t}
	early.visit(first)
	d.exec(put("c", item("c", "1")))
	second := replica("2")
	both := func(count int, key string) {
		for _, w := range []*watch.Watch{first, second} {
			awaitWatch(t, w, "a change", func() bool {
				found := key == ""
				for r := range w.Snapshot().Resources() {
					found = found || r.Key == key
				}
				return found && w.Snapshot().Count() == count
			})
		}
	}
	d.exec(put("d", item("d", "1")))
	both(4, "d")
	c := &client{t: t}
	c.visit(first)
	d.exec(remove("a") + ";" + put("b", item("b", "2")))
	both(3, "")
	c.position.Watch, early.position.Watch = "w2", "w2"
	if got := c.visit(second); got != log.OutcomeExact {
		t.Errorf("a client of one replica is answered with %q by the other, want %q", got, log.OutcomeExact)
	}
	want := map[string]string{"b": item("b", "2"), "c": item("c", "1"), "d": item("d", "1")}
	if !maps.Equal(c.holds, want) {
		t.Errorf("the client holds %v, want %v", c.holds, want)
	}
	if got := early.visit(second); got == log.OutcomeExact || !maps.Equal(early.holds, want) {
		t.Errorf("a client from before the other replica began is answered with %q, and holds %v", got, early.holds)
	}
}
