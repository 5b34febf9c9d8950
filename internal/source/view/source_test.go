package view

import (
	"context"
	"errors"
	"fmt"
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
}

func newRig(t *testing.T, script ...streamtest.Step) *rig {
	t.Helper()
	r := &rig{t: t, registry: watch.NewRegistry()}
	t.Cleanup(r.registry.Close)
	var err error
	r.base, err = r.registry.Add(watch.Config{Name: "w", Source: streamtest.NewScripted(script), StaleAfter: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) source(p view.Params) *Source {
	r.t.Helper()
	d, err := view.Parse(p)
	if err != nil {
		r.t.Fatal(err)
	}
	return New("w", r.open, d)
}

// open is the Opener of the watch.
func (r *rig) open(context.Context) (*watch.Watch, error) { return r.base, nil }

func (r *rig) view(p view.Params) *watch.Watch {
	r.t.Helper()
	v, err := r.registry.Add(watch.Config{Name: "v", Source: r.source(p), StaleAfter: time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// TestFreshness checks that a view is as fresh as its watch.
func TestFreshness(t *testing.T) {
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

// TestResumeAfterAResetThatFailed checks that a view whose newest snapshot was not
// committed does not continue in the order of that snapshot from a revision of another.
func TestResumeAfterAResetThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		r := newRig(t, streamtest.Reset("e1"), streamtest.Upsert("a/1", 15, "1"), streamtest.Commit(15), streamtest.Await(next),
			streamtest.Reset("e2"), streamtest.Upsert("a/2", 3, "1"), streamtest.Commit(9), streamtest.Upsert("b", 20, "1"), streamtest.Commit(20), streamtest.Hang())
		s := r.source(view.Params{Prefix: "a/"})
		first := streamtest.NewSinkRecorder(stream.Resume{}, nil)
		done := make(chan error, 1)
		go func() { done <- s.Watch(t.Context(), stream.Resume{}, failingReset{first}) }()
		synctest.Wait()
		committed := first.Resume()
		next <- struct{}{}
		if err := <-done; !errors.Is(err, errReset) {
			t.Fatalf("Watch: %v", err)
		}
		again := streamtest.NewSinkRecorder(committed, first.State())
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- s.Watch(ctx, committed, again) }()
		synctest.Wait()
		cancel()
		<-done
		if again.Resets() != 1 || len(again.State()) != 1 || again.Resume().Revision != 20 {
			t.Errorf("%d resets, then %v at %v", again.Resets(), again.State(), again.Resume())
		}
	})
}

var errReset = errors.New("a fault of the test")

// failingReset is a sink that begins only one snapshot.
type failingReset struct{ *streamtest.SinkRecorder }

// Reset implements [stream.Sink].
func (f failingReset) Reset(epoch string) error {
	if f.Resets() > 0 {
		return errReset
	}
	return f.SinkRecorder.Reset(epoch)
}

// TestHeldMemory checks that the keys of the view count towards its memory.
func TestHeldMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, streamtest.Reset("e1"), streamtest.Upsert("a/1", 1, "1"), streamtest.Upsert("b", 1, "1"), streamtest.Commit(1),
			streamtest.Upsert("a/22", 2, "1"), streamtest.Commit(2), streamtest.Delete("a/1", 3), streamtest.Commit(3), streamtest.Hang())
		s := r.source(view.Params{Prefix: "a/"})
		h := &holder{SinkRecorder: streamtest.NewSinkRecorder(stream.Resume{}, nil)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Watch(ctx, stream.Resume{}, h) }()
		synctest.Wait()
		cancel()
		<-done
		if want := memberCost + int64(len("a/22")); h.held != want {
			t.Errorf("%d bytes are held, want %d", h.held, want)
		}
	})
}

// TestHeldMemoryOfASnapshot checks that keys count before they are committed, and the
// members of an earlier call beside those of a new snapshot.
func TestHeldMemoryOfASnapshot(t *testing.T) {
	s := &Source{definition: newRig(t, streamtest.Hang()).source(view.Params{Prefix: "a/"}).definition, members: newMembers(0)}
	s.members.set("a/old", true)
	h := &holder{SinkRecorder: streamtest.NewSinkRecorder(stream.Resume{}, nil)}
	n := s.narrow(h, false)
	before := h.held
	if before != s.members.bytes {
		t.Errorf("%d bytes are held for the members, want %d", before, s.members.bytes)
	}
	_ = n.Reset("e")
	const keys, size = 1000, 100
	for i := range keys {
		_ = n.Upsert(stream.Resource{Key: fmt.Sprintf("a/%0*d", size-2, i), Revision: 1, Value: []byte("1")})
	}
	if want := before + keys*(size+memberCost) - holdStep; h.held < want {
		t.Errorf("%d bytes are held inside the snapshot, want at least %d", h.held, want)
	}
	_ = n.Commit(1)
	if want := int64(keys * (size + memberCost)); h.held != want {
		t.Errorf("%d bytes are held after it, want %d", h.held, want)
	}
}

type holder struct {
	*streamtest.SinkRecorder
	held int64
}

// Charge implements [stream.SinkExtension].
func (h *holder) Charge(bytes int64) { h.held += bytes }

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
