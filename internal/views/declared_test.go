package views

import (
	"context"
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

// rig is a watch with a scripted source, and a registry for views of it.
type rig struct {
	t        *testing.T
	registry *watch.Registry
	base     *watch.Watch
	views    *Views
}

func newRig(t *testing.T, script ...streamtest.Step) *rig {
	t.Helper()
	r := &rig{t: t, registry: watch.NewRegistry(), views: NewDeclared()}
	t.Cleanup(r.views.Close)
	t.Cleanup(r.registry.Close)
	var err error
	r.base, err = r.registry.Add(watch.Config{Name: "w", Source: streamtest.NewScripted(script), StaleAfter: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// of returns what makes a watch a view of the watch of the rig.
func (r *rig) of(p view.Params) *watch.ViewConfig {
	r.t.Helper()
	return r.views.View("w", func() (*watch.Watch, error) { return r.base, nil }, definition(r.t, p))
}

func (r *rig) view(p view.Params) *watch.Watch {
	r.t.Helper()
	v, err := r.registry.Add(watch.Config{Name: "v", View: r.of(p)})
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// TestDeclaredFreshness checks that a view is as fresh as its watch.
func TestDeclaredFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		r := newRig(t, streamtest.Reset("e1"), streamtest.Commit(1), streamtest.Await(next),
			streamtest.Status(stream.Stale, "lost"), streamtest.Await(next), streamtest.Status(stream.InSync, ""), streamtest.Hang())
		v := r.view(view.Params{Prefix: "a"})
		for i, want := range []stream.State{stream.InSync, stream.Stale, stream.InSync} {
			if i > 0 {
				next <- struct{}{}
			}
			synctest.Wait()
			if got := v.Status().State; got != want {
				t.Errorf("step %d: the view is %v, want %v", i, got, want)
			}
		}
	})
}

// TestPrimedWithItsWatch checks that there is no view before there is a watch.
func TestPrimedWithItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		r := newRig(t, streamtest.Await(next), streamtest.Reset("e1"), streamtest.Upsert("a", 1, "1"), streamtest.Commit(1), streamtest.Hang())
		v := r.view(view.Params{Prefix: "a"})
		synctest.Wait()
		if v.Snapshot().Primed() {
			t.Error("the view is primed before its watch")
		}
		next <- struct{}{}
		synctest.Wait()
		if s := v.Snapshot(); !s.Primed() || s.Count() != 1 {
			t.Errorf("primed %v, %d resources", s.Primed(), s.Count())
		}
	})
}

// TestWatchIsRemoved checks that the view says so and keeps its state.
func TestWatchIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, streamtest.Reset("e1"), streamtest.Upsert("a", 1, "1"), streamtest.Commit(1), streamtest.Hang())
		v := r.view(view.Params{Prefix: "a"})
		synctest.Wait()
		r.registry.Remove("w")
		for range 20 { // and is not in sync for a moment at each attempt
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if s := v.Status(); s.State != stream.Stale || !strings.Contains(s.Full(), `watch "w", of which this is a view, was removed`) {
				t.Fatalf("the view is %v: %s", s.State, s.Full())
			}
		}
		if n := v.Snapshot().Count(); n != 1 {
			t.Errorf("%d resources are left, want 1", n)
		}
	})
}

// TestUnmatchable checks that changes on which the filter fails are counted, and are not
// in the view.
func TestUnmatchable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, streamtest.Reset("e1"), streamtest.Upsert("a", 1, `{"n":2}`), streamtest.Upsert("b", 1, `{"n":"2"}`),
			streamtest.Upsert("c", 1, `{}`), streamtest.Upsert("d", 1, `{"n":0}`), streamtest.Commit(1), streamtest.Hang())
		v := r.view(view.Params{Filter: "value.n > 1"})
		synctest.Wait()
		if n, events := v.Snapshot().Count(), v.Stats().Events; n != 1 || events["unmatchable"] != 2 {
			t.Errorf("%d resources, %v", n, events)
		}
		if _, counted := r.base.Stats().Events["unmatchable"]; counted {
			t.Error("a watch that is no view counts unmatchable changes")
		}
	})
}

// TestTimesOfTheWatch checks that a change is as old in the view as in its watch.
func TestTimesOfTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		r := newRig(t, streamtest.Reset("e1"), streamtest.Commit(1), streamtest.Await(next),
			func(_ context.Context, sink stream.Sink) error {
				sink.SetTimestamp(time.Now().Add(-time.Hour))
				return nil
			}, streamtest.Upsert("a", 2, "1"), streamtest.Commit(2), streamtest.Hang())
		sub := r.view(view.Params{Prefix: "a"}).Subscribe(log.SubscribeOptions{})
		defer sub.Close()
		var b log.Batch
		synctest.Wait()
		for sub.Next(&b) { // the snapshot
		}
		close(next)
		synctest.Wait()
		if !sub.Next(&b) {
			t.Fatal("the change is missing")
		}
		if at, age := b.Committed(); at.IsZero() || age != time.Hour {
			t.Errorf("committed at %v, age %v: want an hour", at, age)
		}
	})
}
