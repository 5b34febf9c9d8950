package views

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestWindowsShareAnOrder: a window of an order that is there is not made from the watch.
func TestWindowsShareAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{Linger: 10 * time.Second})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`, `d={"n":4}`)
		first := subscribe(t, f.open(ordered(t, "n", 2, 0), "c"), nil)
		second := subscribe(t, f.open(ordered(t, "n", 2, 2), "c"), nil)
		wantLines(t, "the first window", first.lines(), "reset initial", `a={"n":1}@2`, `b={"n":2}@2`, "end@2 of 4")
		wantLines(t, "the second window", second.lines(), "reset initial", `c={"n":3}@2`, `d={"n":4}@2`, "end@2 of 4")
		if s := f.views.Stats(); s.Builds != 1 || s.Views != 3 {
			t.Errorf("%d builds and %d views, want 1 and 3: an order and two windows", s.Builds, s.Views)
		}
		for _, listed := range f.views.Largest(5, "w") {
			if w, _ := listed.Definition.Window(); listed.Resources != 2 || listed.Bytes == 0 || listed.Subscribers != 1 || w.Limit != 2 {
				t.Errorf("the list has %+v with %+v", listed, w)
			}
		}
		f.commit(`a={"n":3.5}`)
		wantLines(t, "the first window", first.lines(), "-a@3 left", `c={"n":3}@2`, "bookmark@3 of 4")
		wantLines(t, "the second window", second.lines(), "-c@3 left", `a={"n":3.5}@3`)

		second.Close()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s := f.views.Stats(); s.Views != 2 {
			t.Errorf("%d views, want 2: the order and the window that is read", s.Views)
		}
		f.commit(`e={"n":0}`)
		wantLines(t, "the window that is left", first.lines(), "-c@4 left", `e={"n":0}@4`, "bookmark@4 of 5")
		again := subscribe(t, f.open(ordered(t, "n", 2, 2), "c"), nil)
		wantLines(t, "the second window again", again.lines(), "reset initial", `c={"n":3}@2`, `a={"n":3.5}@3`, "end@4 of 5")
		if s := f.views.Stats(); s.Builds != 1 {
			t.Errorf("%d builds, want 1", s.Builds)
		}
		first.Close()
		again.Close()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s := f.views.Stats(); s.Views != 0 || s.Bytes != 0 || len(f.views.clients) != 0 {
			t.Errorf("%d views, %d bytes and the clients %v are left", s.Views, s.Bytes, f.views.clients)
		}
	})
}

// TestWindowOfACostlyFilter: builders feed the order, and a window that is opened later needs no change of
// the watch.
func TestWindowOfACostlyFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		of := func(offset int) *view.Definition {
			return definition(t, view.Params{Filter: `value.exists(k, k == "n")`, Order: "-n", Limit: "1", Offset: fmt.Sprint(offset)})
		}
		first := subscribe(t, f.open(of(0), "c"), nil)
		wantLines(t, "the first window", first.lines(), "reset initial", `b={"n":2}@2`, "end@2 of 2")
		second := subscribe(t, f.open(of(1), "c"), nil)
		wantLines(t, "the second window", second.lines(), "reset initial", `a={"n":1}@2`, "end@2 of 2")
		f.commit(`a={"n":3}`)
		wantLines(t, "the first window", first.lines(), "-b@3 left", `a={"n":3}@3`, "bookmark@3 of 2")
		wantLines(t, "the second window", second.lines(), "-a@3 left", `b={"n":2}@2`)
	})
}

// TestWindowHidesWhatRulesHide: a hidden field sorts nothing, and of a resource that is hidden nothing is
// said.
func TestWindowHidesWhatRulesHide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"team":"red","secret":1}`, `b={"team":"red","secret":0}`, `c={"team":"blue","secret":2}`)
		d := definition(t, view.Params{Order: "-secret", Limit: "2", Grants: []view.Grant{{Filter: `value.team == "red"`, Fields: []string{"team"}}}})
		s := subscribe(t, f.open(d, "c"), nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `a={"team":"red"}@2`, `b={"team":"red"}@2`, "end@2 of 2")
		f.commit(`b={"team":"red","secret":9}`, `c={"team":"blue","secret":9}`)
		wantLines(t, "a change of what is hidden", s.lines(), `b={"team":"red"}@3`)
		f.commit(`a={"team":"blue"}`)
		wantLines(t, "one is hidden", s.lines(), "-a@4", "bookmark@4 of 1")
	})
}

func TestWindowsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxPerClient: 3})
		f.commit(`a={"n":1}`)
		for i := range 2 {
			subscribe(t, f.open(ordered(t, "n", 1, i), "c"), nil)
		}
		var refused *Refusal
		if _, err := f.views.Open(f.base, ordered(t, "n", 1, 2), Request{Client: "c"}); !errors.As(err, &refused) || refused.Reason != TooManyOfAClient {
			t.Errorf("a third window beside the order: %v", err)
		}
		if _, err := f.views.Open(f.base, ordered(t, "n", 1, 2), Request{Client: "d"}); err != nil {
			t.Errorf("a window of another client: %v", err)
		}
	})
}

// TestAnOrderAndItsWindowAreTwoViews: there is room for both, or for none.
func TestAnOrderAndItsWindowAreTwoViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			Config
			reason string
		}{{Config{MaxPerClient: 2}, TooManyOfAClient}, {Config{Max: 2, MaxPerClient: 2}, TooManyOfAClient}, {Config{Max: 2, MaxPerClient: 9}, TooMany}} {
			f := newFixture(t, c.Config)
			f.commit(`a={"n":1}`)
			subscribe(t, f.open(filter(t, "value.n == 1"), "c"), nil)
			_, err := f.views.Open(f.base, ordered(t, "n", 1, 0), Request{Client: "c"})
			if refused(t, err, c.reason); f.views.Stats().Views != 1 {
				t.Errorf("%+v: %d views", c.Config, f.views.Stats().Views)
			}
		}
	})
}

// TestOrdersAreLimited: each order takes memory for all that it sorts, so a client has fewer of them than of views.
// One that nobody uses makes room.
func TestOrdersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxOrdersPerClient: 2})
		f.commit(`a={"n":1}`)
		first := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), nil)
		more := subscribe(t, f.open(ordered(t, "n", 1, 1), "c"), nil)
		subscribe(t, f.open(ordered(t, "-n", 1, 0), "c"), nil)
		subscribe(t, f.open(ordered(t, "-n", 1, 1), "c"), nil) // of the same order
		_, err := f.views.Open(f.base, ordered(t, "m", 1, 0), Request{Client: "c"})
		refused(t, err, TooManyOrders)
		subscribe(t, f.open(ordered(t, "m", 1, 0), "d"), nil)
		subscribe(t, f.open(ordered(t, "m", 1, 1), "c"), nil) // of the order of another client
		first.Close()
		time.Sleep(2 * justOpened)
		_, err = f.views.Open(f.base, ordered(t, "m,n", 1, 0), Request{Client: "c"})
		refused(t, err, TooManyOrders)
		more.Close()
		time.Sleep(2 * justOpened)
		subscribe(t, f.open(ordered(t, "m,n", 1, 0), "c"), nil)
	})
}

// TestIdleWindowsMakeRoom: a window that a reader has left counts for its client until another one is asked
// for. One that was just left is kept, since its reader may come back.
func TestIdleWindowsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxPerClient: 4})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		s := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), nil)
		for i := range 10 {
			w, err := f.views.Open(f.base, ordered(t, "n", 1, i+1), Request{Client: "c"})
			if err != nil {
				t.Fatalf("move %d: %v", i, err)
			}
			s.moveTo(w, uint64(i+1))
			s.lines()
			time.Sleep(justOpened / 2)
		}
		if n := f.views.Stats().Views; n > 4 {
			t.Errorf("there are %d views, want 4 at most", n)
		}
		var refused *Refusal
		for i := range 4 {
			if _, err := f.views.Open(f.base, ordered(t, "n", 2, i), Request{Client: "c"}); err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
		}
		if refused == nil {
			t.Error("windows that were just opened are removed")
		}
	})
}

// TestOrderThatDoesNotFit: its windows are stale, and go on once there is room.
func TestOrderThatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxBytes: 300 << 10, Linger: time.Hour})
		f.commit(`a={"n":1}`)
		w := f.open(ordered(t, "n", 1, 0), "c")
		s := subscribe(t, w, nil)
		s.lines()
		var texts, gone []string
		for i := range 2000 {
			texts = append(texts, fmt.Sprintf(`%s%d={"n":%d}`, strings.Repeat("k", 200), i, i))
			gone = append(gone, fmt.Sprintf("%s%d=", strings.Repeat("k", 200), i))
		}
		f.commit(texts...)
		s.lines()
		f.commit(`a={"n":-1}`)
		s.lines()
		if state := w.Status(); state.Reason != noRoom {
			t.Errorf("the window is %v: %q", state.State, state.Reason)
		}
		f.commit(gone...)
		time.Sleep(time.Minute)
		if got := s.lines(); len(got) == 0 || got[len(got)-1] == "" || !strings.Contains(strings.Join(got, "\n"), `a={"n":-1}`) {
			t.Errorf("once there is room: %q", got)
		}
	})
}

// TestWindowInANewEpoch: its places are those of the new order of revisions.
func TestWindowInANewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`)
		for range 5 {
			f.commit(`b={"n":2}`)
		}
		w := f.open(ordered(t, "n", 1, 0), "c")
		s := subscribe(t, w, nil)
		f.commit(`a={"n":0}`)
		s.lines()
		f.upstream.Restore("e2", 2)
		f.endpoint.Move()
		time.Sleep(time.Minute)
		wantLines(t, "the new epoch", s.lines(), "reset epoch_changed", `a={"n":1}@2`, "end@2 of 1")
		f.commit(`a=`, `c={"n":5}`)
		wantLines(t, "a change", s.lines(), "-a@3", `c={"n":5}@3`)
		p, _ := s.Position()
		again := subscribe(t, w, &p)
		f.commit(`c=`)
		wantLines(t, "after a resume", again.lines(), "-c@4", "end@4 of 0")
	})
}

// TestWindowOfADeclaredView follows the view, and not its watch.
func TestWindowOfADeclaredView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`)
		v := f.declare(watch.Config{}, view.Params{Filter: "value.n < 3"})
		w, err := f.views.Open(v, ordered(t, "-n", 1, 0), Request{Client: "c"})
		if err != nil {
			t.Fatal(err)
		}
		s := subscribe(t, w, nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `b={"n":2}@2`, "end@2 of 2")
		f.commit(`c={"n":2.5}`)
		wantLines(t, "one enters the view", s.lines(), "-b@3 left", `c={"n":2.5}@3`, "bookmark@3 of 3")
		f.commit(`c={"n":4}`)
		wantLines(t, "one leaves the view", s.lines(), "-c@4", `b={"n":2}@2`)
	})
}

// TestWindowMadeAgain: where deletes have no revision, a window that is made again does not know what it was at
// the revision of a position.
func TestWindowMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureOf(t, streamtest.NewUpstream("_e", streamtest.NoRevision), Config{Linger: time.Second}, watch.Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		s := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), nil)
		s.lines()
		at := s.at(t)
		f.commit(`a=`)
		s.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		again := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), at)
		wantLines(t, "the window again", again.lines(), "reset expired", `b={"n":2}@2`, "end@2 of 1")
		at = again.at(t)
		again.Close()
		same := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), at)
		wantLines(t, "the same window", same.lines(), "end@2 of 1")
	})
}

// TestWindowDeletesAtTheRevision: what left a window is deleted at the revision at which it did, however much is
// taken in at once. So a reader from after it, who may never have seen the resource, is told nothing.
func TestWindowDeletesAtTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"team":"red","n":1}`, `b={"team":"red","n":2}`, `c={"team":"red","n":3}`)
		d := definition(t, view.Params{Filter: `value.exists(k, k == "team" && value[k] == "red")`, Order: "n", Limit: "2"})
		s := subscribe(t, f.open(d, "c"), nil)
		s.lines()
		at := s.at(t)
		release := f.views.costly.hold()
		f.commit(`a={"team":"blue","n":1}`)
		f.commit(`c={"team":"red","n":4}`)
		release()
		synctest.Wait()
		wantLines(t, "a reader from before", s.lines(), "-a@3", `c={"team":"red","n":4}@4`, "bookmark@4 of 2")
		at.Upserts, at.AsOf = 3, 3
		late := subscribe(t, f.open(d, "c"), at)
		wantLines(t, "a reader from after it", late.lines(), `c={"team":"red","n":4}@4`, "end@4 of 2")
	})
}
