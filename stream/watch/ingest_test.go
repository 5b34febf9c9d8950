package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// script is a Source whose every connection is the next function of a list; the
// last one is used for all that follow.
type script struct {
	connections []stream.SourceFunc
	resumes     []stream.Resume // owned by ingest's reader, read when it is idle
	times       []time.Time
}

func (s *script) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	s.resumes = append(s.resumes, resume)
	s.times = append(s.times, time.Now())
	n := min(len(s.resumes), len(s.connections)) - 1
	return s.connections[n](ctx, resume, sink)
}

// snapshotThen sends a snapshot, then runs more.
func snapshotThen(epoch string, revision uint64, changes []log.Change, more stream.SourceFunc) stream.SourceFunc {
	return func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		if err := sink.Reset(epoch); err != nil {
			return err
		}
		for _, c := range changes {
			if err := sink.Upsert(c.Resource); err != nil {
				return err
			}
		}
		if err := sink.Commit(revision); err != nil {
			return err
		}
		return more(ctx, resume, sink)
	}
}

func stay(ctx context.Context, _ stream.Resume, _ stream.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}

func stayFor(d time.Duration, err error) stream.SourceFunc {
	return func(ctx context.Context, _ stream.Resume, _ stream.Sink) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return err
		}
	}
}

func fail(err error) stream.SourceFunc {
	return func(context.Context, stream.Resume, stream.Sink) error { return err }
}

// bubble runs f with a watch in fake time, and stops the watch afterwards.
func bubble(t *testing.T, c Config, connections []stream.SourceFunc, f func(*testing.T, *Watch, *script)) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{connections: connections}
		r := NewRegistry()
		defer r.Close()
		c.Name, c.Source = "w", s
		w, err := r.Add(c)
		if err != nil {
			t.Fatal(err)
		}
		f(t, w, s)
	})
}

// reader collects what a subscriber sees.
type statusReader struct {
	client
	s *log.Subscription
}

func (r *statusReader) next() []string {
	synctest.Wait()
	r.drain(r.s)
	return r.take()
}

func follow(w *Watch) *statusReader {
	return &statusReader{s: w.Subscribe(log.SubscribeOptions{})}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

var errBroken = errors.New("connection refused")

func TestPrimingBeforeServing(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		fail(errBroken),
		snapshotThen("e", 3, []log.Change{upsert("a", 1)}, stay),
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		expect(t, "unprimed", r.next(), "status priming")
		if got := w.Status().Full(); got != "connection refused" {
			t.Errorf("reason %q, want the source's error", got)
		}
		time.Sleep(time.Second)
		expect(t, "primed", r.next(), "reset initial", "upsert a@1", "end_of_snapshot 3 count=1 resumed=false", "status in_sync")
		if n := w.Stats().Reconnects["error"]; n != 1 {
			t.Errorf("%d reconnects counted, want 1", n)
		}
		r.s.Close()
	})
}

func TestShortOutageIsNotReported(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 3, []log.Change{upsert("a", 1), upsert("b", 2)}, stayFor(time.Minute, nil)),
		snapshotThen("e", 9, []log.Change{upsert("a", 1), upsert("c", 7)}, stay),
	}, func(t *testing.T, w *Watch, s *script) {
		r := follow(w)
		r.next()
		time.Sleep(2 * time.Minute)
		expect(t, "after the outage", r.next(), "bookmark 3 skipped=0 horizon=9", "upsert c@7", "delete b@9")
		if want := (stream.Resume{Epoch: "e", Revision: 3}); s.resumes[1] != want {
			t.Errorf("reconnected with %+v, want %+v", s.resumes[1], want)
		}
		r.s.Close()
	})
}

func TestOutage(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 3, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken),
		func(_ context.Context, _ stream.Resume, sink stream.Sink) error {
			if err := sink.Reset("e"); err != nil {
				return err
			}
			time.Sleep(time.Second)
			return errBroken
		},
		snapshotThen("e", 4, []log.Change{upsert("a", 4)}, stay),
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		r.next()
		time.Sleep(time.Minute + 1500*time.Millisecond)
		expect(t, "lost", r.next(), "status stale")
		lost := w.Status().Since
		if ago := time.Since(lost); ago < 1400*time.Millisecond || ago > 1600*time.Millisecond {
			t.Errorf("stale since %v ago, want since the connection was lost", ago)
		}
		seen := map[string]bool{}
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			for _, e := range r.next() {
				seen[e] = true
			}
			if st := w.Status(); (st.State == stream.Stale || st.State == stream.Resyncing) && !st.Since.Equal(lost) {
				t.Fatalf("%v since %v, want since %v: it was not in sync meanwhile", st.State, st.Since, lost)
			}
		}
		for _, want := range []string{"status resyncing", "upsert a@4", "status in_sync"} {
			if !seen[want] {
				t.Errorf("never saw %q, only %v", want, seen)
			}
		}
		r.s.Close()
	})
}

func TestFlappingUpstreamIsReported(t *testing.T) {
	flap := stayFor(time.Millisecond, errBroken)
	bubble(t, Config{Backoff: Backoff{Min: 50 * time.Millisecond, Max: 100 * time.Millisecond}}, []stream.SourceFunc{
		snapshotThen("e", 3, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)), flap,
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		r.next()
		time.Sleep(time.Minute + 1100*time.Millisecond)
		expect(t, "flapping", r.next(), "status stale")
		r.s.Close()
	})
}

func TestNoEndOfSnapshotIsReported(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
			_ = sink.Reset("e")
			_ = sink.Upsert(upsert("a", 1).Resource)
			return stay(ctx, r, sink)
		},
	}, func(t *testing.T, w *Watch, _ *script) {
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got := w.Status().Full(); got != "loading, 1 resource so far" {
			t.Errorf("after 6 s: %q", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.Status().Full(); !strings.HasPrefix(got, "no end_of_snapshot after 1m") {
			t.Errorf("after a minute: %q", got)
		}
		if w.Snapshot().Primed() {
			t.Error("half a snapshot is served")
		}
	})
}

func TestBrokenOrderIsAnsweredWithASnapshot(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 10, []log.Change{upsert("a", 1)}, func(_ context.Context, _ stream.Resume, sink stream.Sink) error {
			if err := sink.Upsert(upsert("b", 5).Resource); err != nil {
				return err
			}
			return sink.Commit(11)
		}),
		snapshotThen("e", 12, []log.Change{upsert("a", 1), upsert("b", 12)}, stay),
	}, func(t *testing.T, w *Watch, s *script) {
		r := follow(w)
		r.next()
		time.Sleep(time.Second)
		expect(t, "after", r.next(), "bookmark 10 skipped=0 horizon=12", "upsert b@12")
		if s.resumes[1] != (stream.Resume{}) {
			t.Errorf("reconnected with %+v, want from nothing", s.resumes[1])
		}
		if n := w.Stats().Reconnects["order"]; n != 1 {
			t.Errorf("%d broken orders counted, want 1", n)
		}
		r.s.Close()
	})
}

// TestUpstreamBehind: the watch waits for a lagging replica; one that stays behind
// was restored.
func TestUpstreamBehind(t *testing.T) {
	old := snapshotThen("e", 5, []log.Change{upsert("a", 5)}, stay)
	first := snapshotThen("e", 10, []log.Change{upsert("a", 9)}, stayFor(time.Minute, errBroken))
	t.Run("for a while", func(t *testing.T) {
		bubble(t, Config{}, []stream.SourceFunc{first, old, old, snapshotThen("e", 11, []log.Change{upsert("a", 11)}, stay)},
			func(t *testing.T, w *Watch, _ *script) {
				r := follow(w)
				r.next()
				time.Sleep(2 * time.Minute)
				got := r.next()
				if !slices.Contains(got, "upsert a@11") || slices.Contains(got, "reset epoch_changed") {
					t.Errorf("got %q, want the newer value without a reset", got)
				}
				r.s.Close()
			})
	})
	t.Run("for good", func(t *testing.T) {
		bubble(t, Config{}, []stream.SourceFunc{first, old}, func(t *testing.T, w *Watch, _ *script) {
			r := follow(w)
			r.next()
			time.Sleep(time.Minute + 10*time.Second)
			for _, e := range r.next() {
				if !strings.HasPrefix(e, "status") {
					t.Errorf("went back in time: %q", e)
				}
			}
			if st := w.Status(); st.State == stream.InSync {
				t.Error("in sync with an upstream that is behind")
			}
			time.Sleep(2 * time.Minute)
			got := r.next()
			expect(t, "after the patience", got[len(got)-4:],
				"reset epoch_changed", "upsert a@5", "end_of_snapshot 5 count=1 resumed=false", "status in_sync")
			if e := w.Snapshot().Epoch(); e == "e" || !strings.HasPrefix(e, "e~") {
				t.Errorf("epoch %q, want another one", e)
			}
			r.s.Close()
		})
	})
}

func TestOnDemandWatch(t *testing.T) {
	bubble(t, Config{OnDemand: true}, []stream.SourceFunc{snapshotThen("e", 10, []log.Change{upsert("a", 9)}, stay)},
		func(t *testing.T, w *Watch, s *script) {
			time.Sleep(time.Hour)
			if len(s.resumes) != 0 {
				t.Fatal("started without a subscriber")
			}
			r := follow(w)
			if got := r.next(); !slices.Contains(got, "upsert a@9") {
				t.Fatalf("got %q", got)
			}
			r.s.Close()
			time.Sleep(29 * time.Second)
			again := follow(w)
			if got := again.next(); !slices.Contains(got, "upsert a@9") || len(s.resumes) != 1 {
				t.Fatalf("within the linger time: %q, %d connections, want 1", got, len(s.resumes))
			}
			again.s.Close()
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if w.Snapshot().Primed() {
				t.Fatal("still there after the linger time")
			}
			if err := w.Prime(t.Context()); err != nil || len(s.resumes) != 2 {
				t.Fatalf("Prime: %v, %d connections, want 2", err, len(s.resumes))
			}
		})
}

func TestPrimeSaysWhyNot(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{fail(errBroken)}, func(t *testing.T, w *Watch, _ *script) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.Prime(ctx)
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v, want the upstream's error in it", err)
		}
	})
}

// The progress of a snapshot does not hide why it is slow.
func TestProgressKeepsWhatTheUpstreamSays(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
			_ = sink.Status(stream.Priming, "its own upstream is gone")
			return stay(ctx, r, sink)
		},
	}, func(t *testing.T, w *Watch, _ *script) {
		const says = "; the upstream says: its own upstream is gone"
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got, want := w.Status().Full(), "loading, 0 resources so far"+says; got != want {
			t.Errorf("after 6 s: got %q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := w.Status().Full(), "no end_of_snapshot after 1m0s, 0 resources so far"+says; got != want {
			t.Errorf("after a minute: got %q, want %q", got, want)
		}
	})
}

func TestUpstreamsOwnFreshness(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 10, nil, func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
			time.Sleep(time.Second)
			if err := sink.Status(stream.Stale, "its own upstream is gone"); err != nil {
				return err
			}
			time.Sleep(time.Second)
			if err := sink.Status(stream.InSync, ""); err != nil {
				return err
			}
			return stay(ctx, r, sink)
		}),
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		r.next()
		time.Sleep(time.Second + time.Millisecond)
		expect(t, "upstream stale", r.next(), "status stale")
		if got := w.Status().Full(); got != "the upstream says: its own upstream is gone" {
			t.Errorf("reason %q", got)
		}
		time.Sleep(time.Second)
		expect(t, "upstream fresh", r.next(), "status in_sync")
		r.s.Close()
	})
}

func TestBackoffGrowsAndIsJittered(t *testing.T) {
	b := Backoff{}.withDefaults()
	for failures := 1; failures < 100; failures++ {
		for range 20 {
			w := b.Wait(failures, rand.Float64())
			if w < b.Min/2 || w > b.Max+b.Min {
				t.Fatalf("after %d failures: %v", failures, w)
			}
		}
	}
	bubble(t, Config{}, []stream.SourceFunc{fail(errBroken)}, func(t *testing.T, _ *Watch, s *script) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(s.times); n > 400 || n < 100 {
			t.Errorf("%d attempts in an hour, want some 240", n)
		}
	})
}

func TestRegistry(t *testing.T) {
	r := NewRegistry()
	defer r.Close()
	source := stream.SourceFunc(stay)
	if _, err := r.Add(Config{Name: "b", Source: source}); err != nil {
		t.Fatal(err)
	}
	w, err := r.Add(Config{Name: "a", Source: source})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{{Name: "a", Source: source}, {Name: "a b", Source: source}, {Name: "c"}} {
		if _, err := r.Add(c); err == nil {
			t.Errorf("%q was added", c.Name)
		}
	}
	var names []string
	for _, w := range r.Watches() {
		names = append(names, w.Name())
	}
	expect(t, "names", names, "a", "b")
	r.Remove("a")
	select {
	case <-w.Done():
	default:
		t.Error("a removed watch is not done")
	}
	if _, ok := r.Watch("a"); ok {
		t.Error("a removed watch is still there")
	}
}

func TestSnapshotWithRepeatedKeysAndDeletes(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
		_ = sink.Reset("an epoch with spaces, far too long to be sent as it is")
		_ = sink.Upsert(upsert("a", 1).Resource)
		_ = sink.Upsert(upsert("a", 2).Resource)
		_ = sink.Upsert(upsert("b", 3).Resource)
		_ = sink.Delete("b", 4)
		if err := sink.Commit(5); err != nil {
			return err
		}
		return stay(ctx, r, sink)
	}}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		expect(t, "snapshot", r.next()[:3], "reset initial", "upsert a@2", "end_of_snapshot 5 count=1 resumed=false")
		if n := w.Stats().Events["duplicate"]; n != 1 {
			t.Errorf("%d duplicates counted, want 1", n)
		}
		if p := w.Snapshot().Position(); fmt.Sprint(p) != "w@"+stream.CanonicalEpoch("an epoch with spaces, far too long to be sent as it is")+"-5" {
			t.Errorf("position %v", p)
		}
		r.s.Close()
	})
}
