package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// fixture is an upstream, a replica of a watch of it, and views of that watch.
type fixture struct {
	t        *testing.T
	upstream *streamtest.Upstream
	endpoint *streamtest.Replica
	registry *watch.Registry
	base     *watch.Watch
	views    *Views
}

func newFixture(t *testing.T, c Config) *fixture {
	return newFixtureOf(t, streamtest.NewUpstream("e", streamtest.OwnRevision), c, watch.Config{})
}

// newFixtureOf returns one more replica of an upstream.
func newFixtureOf(t *testing.T, u *streamtest.Upstream, c Config, of watch.Config) *fixture {
	t.Helper()
	f := &fixture{t: t, upstream: u, endpoint: u.Replica(), registry: watch.NewRegistry(), views: New(c)}
	t.Cleanup(func() {
		f.views.Close()
		f.registry.Close()
	})
	of.Name, of.Source, of.Backoff = "w", f.endpoint, watch.Backoff{Min: time.Second, Max: time.Second}
	var err error
	if f.base, err = f.registry.Add(of); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return f
}

// commit makes one transaction of the upstream, which the replica sees. Each text is a
// key, and a value or nothing, which deletes it: "a=1".
func (f *fixture) commit(texts ...string) uint64 {
	revision := f.write(texts...)
	f.endpoint.Catch(-1)
	synctest.Wait()
	return revision
}

// write makes one transaction, which the replica does not see yet.
func (f *fixture) write(texts ...string) uint64 {
	var writes []streamtest.Write
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		writes = append(writes, streamtest.Write{Key: key, Value: value, Delete: value == ""})
	}
	return f.upstream.Commit(1, writes...)
}

func definition(t testing.TB, p view.Params) *view.Definition {
	t.Helper()
	d, err := view.Parse(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// filter is a view by an expression.
func filter(t testing.TB, text string) *view.Definition {
	t.Helper()
	return definition(t, view.Params{Filter: text})
}

func (f *fixture) open(d *view.Definition, client string) *watch.Watch {
	f.t.Helper()
	w, err := f.views.Open(f.base, d, Request{Client: client})
	if err != nil {
		f.t.Fatal(err)
	}
	go func() { _ = w.Prime(f.t.Context()) }() // it is built for whoever needs it
	synctest.Wait()
	return w
}

// subscriber reads a watch.
type subscriber struct {
	*log.Subscription
	batch log.Batch
}

func subscribe(t *testing.T, w *watch.Watch, from *stream.Position) *subscriber {
	s := &subscriber{Subscription: w.Subscribe(log.SubscribeOptions{Resume: from})}
	t.Cleanup(s.Close)
	synctest.Wait()
	return s
}

// read returns what there is, as texts.
func (s *subscriber) read() (out []string) {
	synctest.Wait()
	for s.Next(&s.batch) {
		for e := range s.batch.Events() {
			out = append(out, eventText(e))
		}
	}
	return out
}

func eventText(e stream.Event) string {
	switch e.Type {
	case stream.Upsert:
		return fmt.Sprintf("%s=%s@%d", e.Resource.Key, e.Resource.Value, e.Resource.Revision)
	case stream.Delete:
		return fmt.Sprintf("-%s@%d", e.Resource.Key, e.Resource.Revision)
	case stream.Reset:
		return "reset " + e.Reason
	case stream.EndOfSnapshot:
		return fmt.Sprintf("end@%d", e.Revision)
	case stream.StatusChange:
		return "status " + e.State.String()
	}
	return fmt.Sprintf("%v@%d", e.Type, e.Revision)
}

// expect reads what there is, and compares it.
func (s *subscriber) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := s.read(); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

// at is the place of a subscriber.
func (s *subscriber) at(t *testing.T) *stream.Position {
	t.Helper()
	p, ok := s.Position()
	if !ok {
		t.Fatal("there is no position")
	}
	return &p
}

// state returns the resources of a watch, as texts, by key.
func state(w *watch.Watch) (out []string) {
	for r := range w.Snapshot().Resources() {
		out = append(out, fmt.Sprintf("%s=%s", r.Key, r.Value))
	}
	slices.Sort(out)
	return out
}

func expectState(t *testing.T, w *watch.Watch, want ...string) {
	t.Helper()
	if got := state(w); !slices.Equal(got, want) {
		t.Errorf("the view has %q, want %q", got, want)
	}
}
