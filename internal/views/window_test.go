package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// ordered is a window.
func ordered(t testing.TB, order string, limit, offset int) *view.Definition {
	t.Helper()
	return definition(t, view.Params{Order: order, Limit: fmt.Sprint(limit), Offset: fmt.Sprint(offset)})
}

// lines is read, with the total of a window.
func (s *subscriber) lines() (out []string) {
	synctest.Wait()
	for s.Next(&s.batch) {
		for e := range s.batch.Events() {
			text := eventText(e)
			if e.Window {
				text += fmt.Sprintf(" of %d", e.Total)
			}
			if e.Left {
				text += " left"
			}
			out = append(out, text)
		}
	}
	return out
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`, `d={"n":4}`)
		w := f.open(ordered(t, "-n", 2, 0), "c")
		s := subscribe(t, w, nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `d={"n":4}@2`, `c={"n":3}@2`, "end@2 of 4")
		f.commit(`a={"n":9}`)
		wantLines(t, "one enters", s.lines(), "-c@3 left", `a={"n":9}@3`, "bookmark@3 of 4")
		f.commit(`a=`)
		wantLines(t, "one is deleted", s.lines(), "-a@4", `c={"n":3}@2`)
		f.commit(`d={"n":3.5}`)
		wantLines(t, "one changes", s.lines(), `d={"n":3.5}@5`)
		f.commit(`b={"n":0}`)
		wantLines(t, "nothing changes", s.lines())
		f.commit(`c={"n":5}`, `x={"n":4}`)
		wantLines(t, "two change", s.lines(), "-d@7 left", `c={"n":5}@7`, `x={"n":4}@7`)
	})
}

// TestWindowRowThatChangesWhileItIsElsewhere: within a transaction a resource is behind its window, changes there, and comes back.
func TestWindowRowThatChangesWhileItIsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":0}`, `m={"n":2}`, `z={"n":3}`)
		s := subscribe(t, f.open(ordered(t, "n", 1, 1), "c"), nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `m={"n":2}@2`, "end@2 of 3")
		f.commit(`b={"n":1}`, `m={"n":2,"x":1}`, `a=`)
		wantLines(t, "a transaction", s.lines(), `m={"n":2,"x":1}@3`)
	})
}

// TestWindowIsLeftAsOfThatChange: what has left a window may be gone from the view when a reader resumes, catches up, or is sent
// the changes of a tick. So these do not say that the view has it.
func TestWindowIsLeftAsOfThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		w := f.open(ordered(t, "-n", 1, 0), "c")
		s := subscribe(t, w, nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `b={"n":2}@2`, "end@2 of 2")
		at, _ := s.Position()
		ticking := &subscriber{Subscription: w.Subscribe(log.SubscribeOptions{Interval: log.Intervals[0]})}
		defer ticking.Close()
		ticking.lines()
		f.commit(`c={"n":3}`)
		wantLines(t, "one leaves", s.lines(), "-b@3 left", `c={"n":3}@3`, "bookmark@3 of 3")
		f.commit(`b=`)
		wantLines(t, "a resume", subscribe(t, w, &at).lines(), "-b@3", `c={"n":3}@3`, "end@4 of 2")
		time.Sleep(time.Minute)
		if got := ticking.lines(); !slices.Contains(got, "-b@3") {
			t.Errorf("a tick: %q", got)
		}
	})
}

// TestWindowsOpenedWhileTheirOrderIsBuilt: the race detector finds what a feeder and a builder have at the same time.
func TestWindowsOpenedWhileTheirOrderIsBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`, `c={"n":3}`)
		for i := range 200 {
			var all []*watch.Watch
			for offset := range 3 {
				w, err := f.views.Open(f.base, ordered(t, fmt.Sprintf("-n,m%d", i), 2, offset), Request{Client: "c"})
				if err != nil {
					t.Fatal(err)
				}
				go func() { _ = w.Prime(t.Context()) }()
				all = append(all, w)
			}
			synctest.Wait()
			for offset, w := range all {
				if n := w.Snapshot().Count(); n != min(2, 3-offset) {
					t.Fatalf("order %d, window from %d: %d resources", i, offset, n)
				}
			}
		}
	})
}

// TestWindowsOfATransactionOfSeveralRevisions: a row comes into a window at one revision, and its value changes at the next, in the same
// transaction. A reader that another replica has sent the first of the two is sent the second.
func TestWindowsOfATransactionOfSeveralRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := make(chan struct{})
		source := streamtest.NewScripted([]streamtest.Step{
			streamtest.Reset("e"), streamtest.Upsert("a", 1, `{"n":1}`), streamtest.Upsert("b", 2, `{"n":2}`), streamtest.Upsert("c", 3, `{"n":3}`),
			streamtest.Commit(3), streamtest.Await(next),
			streamtest.Upsert("a", 4, `{"n":9}`), streamtest.Upsert("b", 5, `{"n":2,"x":1}`), streamtest.Commit(5), streamtest.Hang(),
		})
		f := &fixture{t: t, registry: watch.NewRegistry(), views: New(Config{})}
		t.Cleanup(func() {
			f.views.Close()
			f.registry.Close()
		})
		var err error
		if f.base, err = f.registry.Add(watch.Config{Name: "w", Source: source}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w := f.open(ordered(t, "n", 1, 0), "c")
		s := subscribe(t, w, nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `a={"n":1}@1`, "end@3 of 3")
		at := s.at(t).At(4)
		close(next)
		wantLines(t, "one leaves, and the next changes", s.lines(), "-a@4 left", `b={"n":2,"x":1}@5`, "bookmark@5 of 3")
		wantLines(t, "a resume of what another replica gave out", subscribe(t, w, &at).lines(), `b={"n":2,"x":1}@5`, "end@5 of 3")
	})
}

// TestWindowPlacesWithoutAllValues: a replica that was not sent all values does not know when each resource came into a
// window. So it neither resumes a position within a snapshot of another replica by that, nor gives out one.
func TestWindowPlacesWithoutAllValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		pad := strings.Repeat("x", storage.FlushSize)
		f.commit(`p={"n":1}`)
		w := f.open(ordered(t, "n", 2, 1), "c")
		s := subscribe(t, w, nil)
		s.lines()
		f.endpoint.Disconnect(nil)
		f.endpoint.Conflate()
		f.upstream.Commit(1, streamtest.Write{Key: "b", Value: `{"n":3,"x":"` + pad + `"}`})
		f.upstream.Commit(1, streamtest.Write{Key: "c", Value: `{"n":4,"x":"` + pad + `"}`})
		for _, n := range []string{"2", "2.5", "9"} { // which is sent only of these
			f.upstream.Commit(1, streamtest.Write{Key: "q", Value: `{"n":` + n + `}`})
		}
		f.endpoint.Catch(-1)
		time.Sleep(time.Minute)
		s.lines()
		at, _ := s.Position()
		within := at
		within.Upserts = at.AsOf - 1 // of a replica at which c came into the window with the last change
		var got []string
		for _, line := range subscribe(t, w, &within).lines() {
			got = append(got, line[:1])
		}
		wantLines(t, "a resume of what another replica gave out", got, "b", "c", "e")
		s = subscribe(t, w, nil)
		for s.Next(&s.batch) {
			if p, placed := s.Position(); placed && p.Partial() && p.Upserts > 0 {
				t.Errorf("a position within the snapshot is %v", p)
			}
		}
	})
}
