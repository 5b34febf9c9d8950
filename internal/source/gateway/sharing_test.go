package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// origins is a gateway with several watches, each with its own upstream.
type origins struct {
	*node
	upstreams map[string]*streamtest.Upstream
	endpoints map[string]*streamtest.Replica
}

func newOrigins(t *testing.T, watches ...string) *origins {
	t.Helper()
	o := &origins{node: newNode(t), upstreams: map[string]*streamtest.Upstream{}, endpoints: map[string]*streamtest.Replica{}}
	r := watch.NewRegistry()
	o.registry = r
	for _, name := range watches {
		o.declare(name)
	}
	o.start(r)
	return o
}

// declare adds a watch that has one resource.
func (o *origins) declare(name string) {
	o.t.Helper()
	u := streamtest.NewUpstream("e-"+name, streamtest.OwnRevision)
	o.upstreams[name], o.endpoints[name] = u, u.Replica()
	o.write(name, "first", 1)
	prime(o.t, add(o.t, o.registry, name, o.endpoints[name]))
}

func (o *origins) write(name, key string, n int) {
	o.upstreams[name].Commit(1, streamtest.Write{Key: key, Value: streamtest.ValueOf(n)})
	o.endpoints[name].Catch(-1)
}

func prime(t *testing.T, w *watch.Watch) {
	t.Helper()
	await(t, w, func() bool { return w.Snapshot().Primed() })
}

// await waits until a watch is in a state.
func await(t *testing.T, w *watch.Watch, ok func() bool) {
	t.Helper()
	timeout := time.NewTimer(10 * time.Second)
	defer timeout.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("watch %s: not as expected after 10s: %v, %d resources at %d",
				w.Name(), w.Status(), w.Snapshot().Count(), w.Snapshot().Revision())
		}
	}
}

// follow declares a watch that follows the one of the same name.
func (o *origins) follow(r *watch.Registry, name string, s stream.Source) *watch.Watch {
	o.t.Helper()
	w := add(o.t, r, name, s)
	o.caughtUp(w, name)
	return w
}

// caughtUp waits until a watch is up to date.
func (o *origins) caughtUp(w *watch.Watch, name string) {
	o.t.Helper()
	await(o.t, w, func() bool { return w.Snapshot().Revision() == o.upstreams[name].Revision() })
}

func newRegistry(t *testing.T) *watch.Registry {
	r := watch.NewRegistry()
	t.Cleanup(r.Close)
	return r
}

// watchesOf returns the watches that a request names.
func watchesOf(r *http.Request) string {
	return strings.Join(slices.Sorted(slices.Values(r.URL.Query()["watch"])), " ")
}

// undisturbed fails if a watch has lost its upstream, or got a second snapshot.
func undisturbed(t *testing.T, w *watch.Watch) {
	t.Helper()
	s := w.Stats()
	reconnects := uint64(0)
	for _, n := range s.Reconnects {
		reconnects += n
	}
	if reconnects > 0 || s.Resyncs["reconnect"] > 0 || s.Resyncs["epoch_changed"] > 0 {
		t.Errorf("watch %s: reconnects %v, resyncs %v, want none but the initial one", w.Name(), s.Reconnects, s.Resyncs)
	}
}

// Watches that start together share one request. One that joins later gets its
// snapshot, and the others continue without one.
func TestWatchesShareOneRequest(t *testing.T) {
	o := newOrigins(t, "a", "b", "c")
	u, r := o.upstream(), newRegistry(t)
	sa, sb, sc := source(t, u, "a", ""), source(t, u, "b", ""), source(t, u, "c", "")
	a, b := add(t, r, "a", sa), add(t, r, "b", sb)
	o.caughtUp(a, "a")
	o.caughtUp(b, "b")
	if got := o.requests(); len(got) != 1 || watchesOf(got[0]) != "a b" {
		t.Fatalf("%d requests, want one for both", len(got))
	}
	o.write("a", "second", 2)
	o.caughtUp(a, "a")

	c := o.follow(r, "c", sc)
	got := o.requests()
	if len(got) != 2 || watchesOf(got[1]) != "a b c" {
		t.Fatalf("%d requests, want a second one for all three", len(got))
	}
	wantID(t, got[1], "a@"+a.Snapshot().Epoch()+"-3", "b@"+b.Snapshot().Epoch()+"-2")
	for n := range 20 {
		for _, name := range []string{"a", "b", "c"} {
			o.write(name, fmt.Sprint("k", n), n)
		}
	}
	for _, w := range []*watch.Watch{a, b, c} {
		o.caughtUp(w, w.Name())
		undisturbed(t, w)
	}
}

func wantID(t *testing.T, r *http.Request, positions ...string) {
	t.Helper()
	got := strings.Split(r.Header.Get("Last-Event-ID"), ",")
	slices.Sort(got)
	if !slices.Equal(got, positions) {
		t.Errorf("positions %q, want %q", got, positions)
	}
}

// A watch that ends is no longer requested.
func TestEndedWatchIsNotRequested(t *testing.T) {
	o := newOrigins(t, "a", "b")
	u, r, q := o.upstream(), newRegistry(t), newRegistry(t)
	sa, sb := source(t, u, "a", ""), source(t, u, "b", "")
	a, b := add(t, r, "a", sa), add(t, q, "b", sb)
	o.caughtUp(a, "a")
	o.caughtUp(b, "b")
	q.Close()
	timeout := time.NewTimer(10 * time.Second)
	defer timeout.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for got := o.requests(); watchesOf(got[len(got)-1]) != "a"; got = o.requests() {
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("after 10s the last of %d requests is still for %q", len(got), watchesOf(got[len(got)-1]))
		}
	}
	o.write("a", "second", 2)
	o.caughtUp(a, "a")
	undisturbed(t, a)
}

// A watch that does not exist is refused by name, and does not disturb the
// others. It is found as soon as it exists.
func TestUnknownWatchDoesNotDisturbOthers(t *testing.T) {
	o := newOrigins(t, "a", "b")
	u, r := o.upstream(), newRegistry(t)
	sa, sb, sn := source(t, u, "a", ""), source(t, u, "b", ""), source(t, u, "nosuch", "")
	a, b, nosuch := add(t, r, "a", sa), add(t, r, "b", sb), add(t, r, "nosuch", sn)
	o.caughtUp(a, "a")
	o.caughtUp(b, "b")
	await(t, nosuch, func() bool { return strings.Contains(nosuch.Status().Full(), "404") })
	want := fmt.Sprintf(`gateway %s, watch "nosuch": 404 Not Found: there is no watch "nosuch"; GET /v1/watches lists them`, o.url())
	if got := nosuch.Status(); got.Full() != want {
		t.Errorf("reason %s\nwant %s", got.Full(), want)
	}
	await(t, nosuch, func() bool { return nosuch.Stats().Reconnects["error"] > 5 })
	shared := 0
	for _, r := range o.requests() {
		if watchesOf(r) != "nosuch" {
			shared++
		}
	}
	if shared > 2 {
		t.Errorf("the others had %d requests, want at most the refused one and theirs", shared)
	}
	o.declare("nosuch")
	o.caughtUp(nosuch, "nosuch")
	for _, w := range []*watch.Watch{a, b} {
		o.write(w.Name(), "second", 2)
		o.caughtUp(w, w.Name())
		undisturbed(t, w)
	}
}

// A watch that the other gateway refuses, since it does not fit into its memory
// there, reports why; the others of the request are served.
func TestRefusedWatchDoesNotDisturbOthers(t *testing.T) {
	o := newOrigins(t, "a")
	large := stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		if err := sink.Reset("e"); err != nil {
			return err
		}
		return sink.Upsert(stream.Resource{Key: "k", Revision: 1, Value: make([]byte, 1<<20)})
	})
	full, err := o.registry.Add(watch.Config{Name: "full", Source: large, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	await(t, full, func() bool { return full.Full() != nil })

	u, r := o.upstream(), newRegistry(t)
	sa, sf := source(t, u, "a", ""), source(t, u, "full", "")
	a, f := add(t, r, "a", sa), add(t, r, "full", sf)
	o.caughtUp(a, "a")
	await(t, f, func() bool { return strings.Contains(f.Status().Full(), "takes no subscribers: it is too large") })
	undisturbed(t, a)
}

// The goodbye watch_removed names none. The others continue.
func TestRemovedWatchDoesNotDisturbOthers(t *testing.T) {
	o := newOrigins(t, "a", "b")
	u, r := o.upstream(), newRegistry(t)
	sa, sb := source(t, u, "a", ""), source(t, u, "b", "")
	a, b := add(t, r, "a", sa), add(t, r, "b", sb)
	o.caughtUp(a, "a")
	o.caughtUp(b, "b")
	o.registry.Remove("b")
	await(t, b, func() bool { return b.Status().State == stream.Stale && strings.Contains(b.Status().Full(), "404") })
	o.write("a", "second", 2)
	o.caughtUp(a, "a")
	undisturbed(t, a)
}

// A stream names a watch once: two views of one watch have a request each, and
// an epoch each, which is the upstream's for that view.
func TestTwoViewsOfOneWatch(t *testing.T) {
	o := newOrigins(t, "a")
	o.write("a", "x/1", 1)
	o.write("a", "y/1", 1)
	u, r := o.upstream(), newRegistry(t)
	sx, sy, all := source(t, u, "a", "x/"), source(t, u, "a", "y/"), source(t, u, "a", "")
	x, y, a := o.follow2(r, "x", sx), o.follow2(r, "y", sy), o.follow2(r, "all", all)
	if x.Snapshot().Count() != 1 || y.Snapshot().Count() != 1 || a.Snapshot().Count() != 3 {
		t.Errorf("%d, %d and %d resources, want 1, 1 and 3", x.Snapshot().Count(), y.Snapshot().Count(), a.Snapshot().Count())
	}
	ex, ey, ea := x.Snapshot().Epoch(), y.Snapshot().Epoch(), a.Snapshot().Epoch()
	if ea != o.watch("a").Snapshot().Epoch() || ex == ea || ey == ea || ex == ey {
		t.Errorf("epochs %q, %q and %q, want the upstream's last, and two others", ex, ey, ea)
	}
	o.write("a", "x/2", 2)
	await(t, x, func() bool { return x.Snapshot().Count() == 2 })
	// The other view is informed of progress without changes for it.
	o.caughtUp(y, "a")
}

func (o *origins) follow2(r *watch.Registry, name string, s stream.Source) *watch.Watch {
	o.t.Helper()
	w := add(o.t, r, name, s)
	o.caughtUp(w, "a")
	return w
}

func (o *origins) watch(name string) *watch.Watch {
	w, _ := o.registry.Watch(name)
	return w
}

// More watches than fit into an id use as few requests as possible.
func TestMoreWatchesThanOneRequestCanName(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("watch-number-%02d", i))
	}
	o := newOrigins(t, names...)
	u, r := o.upstream(), newRegistry(t)
	var watches []*watch.Watch
	var sources []stream.Source
	for _, name := range names {
		sources = append(sources, source(t, u, name, ""))
	}
	for i, name := range names {
		watches = append(watches, add(t, r, name, sources[i]))
	}
	for _, w := range watches {
		o.caughtUp(w, w.Name())
		undisturbed(t, w)
	}
	const each = 12 // LongestPosition is 83 bytes
	if got := len(o.requests()); got != (len(names)+each-1)/each {
		t.Errorf("%d requests, want %d", got, (len(names)+each-1)/each)
	}
}

// A filter that the upstream applies: what leaves the part there is deleted here.
func TestFilterIsAppliedUpstream(t *testing.T) {
	o := newOrigins(t, "a")
	o.write("a", "x", 1)
	d, err := view.Parse(view.Params{Filter: `key.startsWith("x") && value.n < 5`, Fields: []string{"n"}})
	if err != nil {
		t.Fatal(err)
	}
	u, r := o.upstream(), newRegistry(t)
	some, err := u.Source("a", d)
	if err != nil {
		t.Fatal(err)
	}
	all := source(t, u, "a", "")
	part, whole := o.follow2(r, "part", some), o.follow2(r, "whole", all)
	if part.Snapshot().Count() != 1 || whole.Snapshot().Count() != 2 {
		t.Errorf("%d and %d resources, want 1 and 2", part.Snapshot().Count(), whole.Snapshot().Count())
	}
	o.write("a", "x", 7)
	await(t, part, func() bool { return part.Snapshot().Count() == 0 })
	o.write("a", "x", 2)
	await(t, part, func() bool { return part.Snapshot().Count() == 1 })
	undisturbed(t, part)
	undisturbed(t, whole)
}
