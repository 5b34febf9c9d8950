package views

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

func refused(t *testing.T, err error, reason string) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Reason != reason {
		t.Errorf("error %v, want a refusal because of %q", err, reason)
	}
}

// TestSharing: all who ask for the same definition get the same view.
func TestSharing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		one := f.open(filter(t, `value.n == 1`), "a")
		if f.open(filter(t, `(value.n)==1`), "b") != one {
			t.Error("the same definition is another view")
		}
		if f.open(filter(t, `value.n == 2`), "a") == one || f.open(definition(t, view.Params{}), "a") != f.base {
			t.Error("another definition is the same view, or the whole watch is a view")
		}
		if n := f.views.Stats().Views; n != 2 {
			t.Errorf("there are %d views, want 2", n)
		}
	})
}

// TestLinger: a view stays for a while after its last subscriber, and no longer.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{Linger: 10 * time.Second})
		d := filter(t, `value.n == 1`)
		w := f.open(d, "a")
		time.Sleep(9 * time.Second)
		s := subscribe(t, w, nil)
		time.Sleep(time.Minute)
		if f.open(d, "a") != w {
			t.Fatal("a view with a subscriber ends")
		}
		s.Close()
		time.Sleep(9 * time.Second)
		if f.open(d, "a") != w {
			t.Fatal("a view ends too early")
		}
		time.Sleep(9 * time.Second)
		select {
		case <-w.Done():
			t.Fatal("asking for a view does not keep it")
		default:
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case <-w.Done():
		default:
			t.Fatal("a view without subscribers stays")
		}
		if s := f.views.Stats(); s.Views != 0 || s.Bytes != 0 || len(f.views.clients) != 0 || len(f.views.watches) != 0 {
			t.Errorf("after the last view there are %+v, %d clients and %d watches", s, len(f.views.clients), len(f.views.watches))
		}
		if f.open(d, "a") == w {
			t.Error("a view that has ended is opened again")
		}
	})
}

// TestLimits: each limit refuses one more view, and counts views that exist.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{Max: 4, MaxPerClient: 2, Linger: time.Minute})
		open := func(n int, client string) (*watch.Watch, error) {
			return f.views.Open(f.base, filter(t, fmt.Sprintf(`value.n == %d`, n)), Request{Client: client})
		}
		held := func(n int, client string) *subscriber {
			w, err := open(n, client)
			if err != nil {
				t.Fatal(err)
			}
			return subscribe(t, w, nil)
		}
		first := held(1, "a")
		held(2, "a")
		_, err := open(3, "a")
		refused(t, err, TooManyOfAClient)
		if _, err := open(1, "a"); err != nil {
			t.Errorf("a view that exists is refused: %v", err)
		}
		held(3, "b")
		held(4, "c")
		_, err = open(5, "d")
		refused(t, err, TooMany)

		first.Close()
		time.Sleep(justOpened / 2)
		_, err = open(5, "d")
		refused(t, err, TooMany) // it was used just now
		time.Sleep(justOpened)
		held(5, "d") // in place of the idle one
		synctest.Wait()
		held2, err := open(6, "a")
		refused(t, err, TooMany)
		if held2 != nil || f.views.Stats().Views != 4 || f.views.clients["a"] != 1 {
			t.Errorf("there are %d views, %d of them of the first client", f.views.Stats().Views, f.views.clients["a"])
		}
		f.views.Close()
		_, err = open(7, "e")
		refused(t, err, TooMany)
	})
}

// TestContents: resources enter, change in, and leave a view, and a transaction that
// concerns several arrives as one.
func TestContents(t *testing.T) {
	for _, text := range []string{`value.n > 1`, `value.team == "x" && value.n > 1`, `value.exists(k, k == "n" && value[k] > 1)`} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.commit(`a={"team":"x","n":2}`, `b={"team":"x","n":1}`)
			s := subscribe(t, f.open(filter(t, text), "c"), nil)
			s.expect(t, "reset initial", `a={"team":"x","n":2}@2`, "end@2")
			f.commit(`a={"team":"x","n":1}`, `b={"team":"x","n":2}`, `c={"team":"x","n":3}`)
			if !s.Next(&s.batch) || !s.batch.Boundary() || s.batch.Count(stream.Upsert) != 2 || s.batch.Count(stream.Delete) != 1 {
				t.Errorf("a transaction of three changes is %d and %d", s.batch.Count(stream.Upsert), s.batch.Count(stream.Delete))
			}
			f.commit(`c=`)
			s.expect(t, "-c@4")
			f.commit(`d={"team":"x","n":1}`)
			f.commit(`d=`)
			s.expect(t)
		})
	}
}

// TestUnconcerned: a state that does not concern a view wakes none of its readers, and is
// known to all who ask.
func TestUnconcerned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		w := f.open(filter(t, `value.n == 1`), "c")
		s := subscribe(t, w, nil)
		s.read()
		changed := w.Changed()
		revision := f.commit(`b={"n":2}`)
		select {
		case <-changed:
			t.Error("readers are woken")
		default:
		}
		if w.Snapshot().Revision() != revision || !s.Bookmark(&s.batch) || s.at(t).AsOf != revision {
			t.Errorf("the view is at %d, its reader at %v, want %d", w.Snapshot().Revision(), s.at(t), revision)
		}
		select {
		case <-w.Changed():
			t.Error("the channel of a new state is closed")
		default:
		}
		f.commit(`b={"n":1}`)
		select {
		case <-changed:
		default:
			t.Error("readers are not woken")
		}
	})
}

// TestFreshness: the status of the watch is that of all its views.
func TestFreshness(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.n > 1`, `value.exists(k, k == "n")`} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			s := subscribe(t, f.open(filter(t, text), "c"), nil)
			s.expect(t, "reset initial", "end@1")
			changed := s.Changed()
			f.endpoint.Refuse(errors.New("down"))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			select {
			case <-changed:
			default:
				t.Error("the reader is not woken")
			}
			s.expect(t, "status stale")
			f.endpoint.Refuse(nil)
			time.Sleep(10 * time.Second)
			got := s.read()
			if len(got) == 0 || got[len(got)-1] != "status in_sync" {
				t.Errorf("read %q, want in_sync in the end", got)
			}
		})
	}
}

// TestWatchBeginsAnew: subscribers get the state of the new revision order.
func TestWatchBeginsAnew(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.n > 0`, `value.exists(k, k == "n")`} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.commit(`a={"n":1}`)
			w := f.open(filter(t, text), "c")
			s := subscribe(t, w, nil)
			s.read()
			f.upstream.Restore("e2", 1)
			f.endpoint.Move()
			time.Sleep(10 * time.Second)
			f.commit(`b={"n":1}`)
			expectState(t, w, `b={"n":1}`)
			if got := s.read(); len(got) == 0 || got[0] != "reset epoch_changed" {
				t.Errorf("read %q, want a reset first", got)
			}
		})
	}
}

// TestOnDemand: the subscribers of a view hold its watch, and count there.
func TestOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureOf(t, streamtest.NewUpstream("e", streamtest.OwnRevision), Config{Linger: time.Hour}, watch.Config{OnDemand: true, Linger: time.Second})
		f.commit(`a={"n":1}`)
		w, err := f.views.Open(f.base, filter(t, `value.n == 1`), Request{Client: "c"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.Snapshot().Primed() || f.base.InUse() {
			t.Fatal("opening a view starts its watch")
		}
		s := subscribe(t, w, nil)
		time.Sleep(time.Minute)
		if got := s.read(); f.base.Subscribers() != 1 || w.Subscribers() != 1 || len(got) == 0 || got[len(got)-1] != "end@2" {
			t.Errorf("the watch has %d subscribers, the view %d, and read %q", f.base.Subscribers(), w.Subscribers(), got)
		}
		s.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.base.Snapshot().Primed() || w.Snapshot().Primed() || f.base.Subscribers() != 0 {
			t.Error("the watch goes on without subscribers, or its view does")
		}
		f.commit(`b={"n":1}`)
		if err := w.Prime(t.Context()); err != nil {
			t.Fatal(err)
		}
		expectState(t, w, `a={"n":1}`, `b={"n":1}`)
	})
}

// TestWatchRemoved: the views of a watch that was removed end, whoever uses them.
func TestWatchRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		var all []*watch.Watch
		for _, text := range []string{`value.n == 1`, `value.n > 0`, `value.exists(k, k == "n")`} {
			w := f.open(filter(t, text), "c")
			subscribe(t, w, nil)
			all = append(all, w)
		}
		f.registry.Close()
		synctest.Wait()
		for i, w := range all {
			select {
			case <-w.Done():
			default:
				t.Errorf("view %d goes on", i)
			}
		}
		if s := f.views.Stats(); s.Views != 0 || s.Bytes != 0 {
			t.Errorf("there are %+v", s)
		}
		w := f.open(filter(t, `value.n == 1`), "c")
		synctest.Wait()
		select {
		case <-w.Done():
		default:
			t.Error("a view of a watch that was removed goes on")
		}
	})
}

// TestGoroutines: views do not have goroutines of their own.
func TestGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.open(filter(t, `value.n == 0`), "c")
		before := runtime.NumGoroutine()
		for n := range 1000 {
			subscribe(t, f.open(filter(t, fmt.Sprintf(`value.n == %d`, n)), "c"), nil)
		}
		for n := range 20 {
			f.commit(fmt.Sprintf(`a={"n":%d}`, n))
		}
		const runtimes = 10 // the runtime's count while they run finalizers and cleanups
		if now := runtime.NumGoroutine(); now > before+runtimes {
			t.Errorf("a thousand views have %d goroutines", now-before)
		}
	})
}

// TestCloseAtAnyTime: everything ends while views are made, fed and used.
func TestCloseAtAnyTime(t *testing.T) {
	for range 20 {
		f := newFixtureInRealTime(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range 200 {
				w, err := f.views.Open(f.base, filter(t, fmt.Sprintf(`value.n == %d`, n%50)), Request{Client: "c"})
				if err != nil {
					return
				}
				w.Subscribe(log.SubscribeOptions{}).Close()
				f.write(fmt.Sprintf(`k%d={"n":%d}`, n%7, n))
				f.endpoint.Catch(-1)
			}
		}()
		runtime.Gosched()
		f.views.Close()
		<-done
		f.registry.Close()
		if s := f.views.Stats(); s.Views != 0 || s.Bytes != 0 || f.views.leaving.Load() != 0 {
			t.Fatalf("after the end there are %+v, and %d bytes are leaving", s, f.views.leaving.Load())
		}
	}
}

func newFixtureInRealTime(t *testing.T) *fixture {
	f := &fixture{t: t, upstream: streamtest.NewUpstream("e", streamtest.OwnRevision), registry: watch.NewRegistry(), views: New(Config{})}
	f.endpoint = f.upstream.Replica()
	var err error
	if f.base, err = f.registry.Add(watch.Config{Name: "w", Source: f.endpoint}); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestOpenedAndLeft: a view that nobody waits for is not made.
func TestOpenedAndLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{Linger: time.Second})
		f.commit(`a={"n":1}`)
		for i := range 100 {
			if _, err := f.views.Open(f.base, filter(t, fmt.Sprintf(`value.n > -%d`, i+1)), Request{Client: "c"}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s := f.views.Stats(); s.Views != 100 || s.Builds != 0 {
			t.Errorf("%+v", s)
		}
		s := subscribe(t, f.open(filter(t, `value.n > -1`), "d"), nil)
		if got := s.read(); len(got) == 0 || got[len(got)-1] != "end@2" || f.views.Stats().Builds != 1 {
			t.Errorf("read %q after %d builds", got, f.views.Stats().Builds)
		}
		s.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := f.views.Stats(); s.Views != 0 || s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestDefinitionsAreShared checks that all who ask for a view share its definition, and that
// who asks for another view does not.
func TestDefinitionsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		parse := func(filter string) *view.Definition {
			d, err := view.Parse(view.Params{Filter: filter})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		first, again, other := parse("value.n == 1"), parse("value.n==1"), parse("value.n == 2")
		w, err := f.views.Open(f.base, first, Request{})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.views.Shared(w, again); got != first {
			t.Errorf("the definition of who came later is %v, want that of the view", got.Params())
		}
		if got := f.views.Shared(w, other); got != other {
			t.Errorf("the definition of a view that does not exist is %v, want the one that was given", got.Params())
		}
	})
}
