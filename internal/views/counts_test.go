package views

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

func grouping(t testing.TB, by, sum string) *view.Grouping {
	t.Helper()
	g, err := view.ParseGrouping([]string{by}, sum)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// count opens a count, and waits until it is made or refused.
func (f *fixture) count(of *watch.Watch, by, sum string) *watch.Watch {
	f.t.Helper()
	w, err := f.views.Count(of, grouping(f.t, by, sum), Request{Client: "c"})
	if err != nil {
		f.t.Fatal(err)
	}
	go func() { _ = w.Prime(f.t.Context()) }()
	synctest.Wait()
	return w
}

// TestCountsFollow: groups come, change and go, each with the revision of the commit, and a
// commit that changes no group is no event.
func TestCountsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"s":"up","n":1.5}`, `b={"s":"up","n":-2}`, `c={"s":"down"}`)
		s := subscribe(t, f.count(f.base, "s", "n"), nil)
		s.expect(t, "reset initial", `down={"count":1}@2`, `up={"count":2,"sum":-0.5,"min":-2,"max":1.5}@2`, "end@2")
		f.commit(`a={"s":"up","n":1.5,"other":1}`)
		s.expect(t)
		f.commit(`c={"s":"up","n":1e999999999}`, `b={"s":null}`, `d={"s":"1"}`, `e={"s":1}`)
		s.expect(t, `"1"={"count":1}@4`, `1={"count":1}@4`, "-down@4", `null={"count":1}@4`, `up={"count":2,"sum":1.5,"min":1.5,"max":1.5}@4`)
		at := s.at(t)
		f.commit("a")
		s.expect(t, `up={"count":1}@5`)
		again := subscribe(t, f.count(f.base, "s", "n"), at)
		again.expect(t, `up={"count":1}@5`, "end@5")
	})
}

// TestCountsOfAView counts only what the view has.
func TestCountsOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"s":"up","n":1}`, `b={"s":"up","n":2}`)
		d := definition(t, view.Params{Grants: []view.Grant{{Filter: "value.n == 1", Fields: []string{"n"}}}})
		s := subscribe(t, f.count(f.open(d, "c"), "s,n", ""), nil)
		s.expect(t, "reset initial", `[null,1]={"count":1}@2`, "end@2")
		f.commit(`b={"s":"down","n":1}`)
		s.expect(t, `[null,1]={"count":2}@3`)
		last := f.commit(`c={"s":"down","n":7}`)
		s.expect(t)
		ahead := *s.at(t)
		if ahead.AsOf != last {
			t.Errorf("at %d after a commit that the view has nothing of, want %d", ahead.AsOf, last)
		}
		ahead.AsOf, ahead.Upserts = last+1, last+1
		waits := subscribe(t, f.count(f.open(d, "c"), "s,n", ""), &ahead)
		waits.expect(t, "status resyncing")
		woken := waits.Changed()
		f.commit(`c={"s":"down","n":8}`)
		select {
		case <-woken:
		default:
			t.Error("a reader that was ahead is not woken")
		}
		waits.expect(t, "end@5", "status in_sync")
	})
}

// TestTooManyGroups: the field with the most values is named, the state stays, and counting goes on
// once there are fewer.
func TestTooManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxGroups: 2})
		f.commit(`a={"s":1,"t":1}`, `b={"s":1,"t":2}`)
		w := f.count(f.base, "s,t", "")
		s := subscribe(t, w, nil)
		s.expect(t, "reset initial", `[1,1]={"count":1}@2`, `[1,2]={"count":1}@2`, "end@2")
		f.commit(`c={"s":1,"t":3}`)
		s.expect(t, "status stale")
		var many *TooManyGroups
		if err := w.Prime(t.Context()); !errors.As(err, &many) || many.Field != "t" || many.Values != 3 || many.Limit != 2 {
			t.Errorf("waiting for the state ended with %v", err)
		}
		if got := w.Status().Reason; !strings.Contains(got, "the field t has 3 values") {
			t.Errorf("the reason is %q", got)
		}
		other := f.count(f.base, "t", "")
		if err := other.Prime(t.Context()); !errors.As(err, &many) || other.Snapshot().Primed() {
			t.Errorf("a count of too many groups is primed, %v", err)
		}
		f.commit("a")
		time.Sleep(2 * retryEvery)
		s.expect(t, "bookmark@2", "-[1,1]@4", `[1,3]={"count":1}@4`, "status in_sync")
		if err := w.Prime(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCountsWithoutRoom: a count that does not fit keeps what it has, and goes on once there is room.
func TestCountsWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxBytes: 200_000})
		f.commit(`a={"s":1,"n":0}`)
		w := f.count(f.base, "s", "n")
		s := subscribe(t, w, nil)
		s.read()
		var writes []string
		for i := range 2000 {
			writes = append(writes, fmt.Sprintf(`k%d={"s":1,"n":%d}`, i, i))
		}
		f.commit(writes...)
		s.expect(t, "status stale")
		if w.Status().Reason != noRoom || f.views.holds() > 200_000 {
			t.Errorf("%v, and %d bytes are held", w.Status(), f.views.holds())
		}
		expectState(t, w, `1={"count":1,"sum":0,"min":0,"max":0}`)
		f.views.Reconfigure(Config{MaxBytes: 10_000_000})
		time.Sleep(2 * retryEvery)
		s.read()
		expectState(t, w, `1={"count":2001,"sum":1999000,"min":0,"max":1999}`)
	})
}

// TestCountsAreShared: equal groupings share a count, which goes a while after its last reader.
func TestCountsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxPerClient: 1})
		f.commit(`a={"s":1}`)
		w := f.count(f.base, "s", "")
		if again := f.count(f.base, ` "s"`, ""); again != w {
			t.Error("an equal grouping has another count")
		}
		time.Sleep(time.Second)
		if other := f.count(f.base, "t", ""); !w.Ended() || other == w {
			t.Error("an idle count did not make room")
		}
		s := subscribe(t, f.count(f.base, "t", ""), nil)
		time.Sleep(time.Minute)
		var refusal *Refusal
		if _, err := f.views.Count(f.base, grouping(t, "u", ""), Request{Client: "c"}); !errors.As(err, &refusal) || refusal.Reason != TooManyOfAClient {
			t.Errorf("one count too many: %v", err)
		}
		s.Close()
		time.Sleep(time.Minute)
		if n := f.views.Stats(); n.Views != 0 || n.Bytes != 0 {
			t.Errorf("in the end there are %d, of %d bytes", n.Views, n.Bytes)
		}
	})
}

// TestCountsEndWithTheirWatch: its readers are told.
func TestCountsEndWithTheirWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"s":1}`)
		w := f.count(f.base, "s", "")
		f.registry.Close()
		synctest.Wait()
		if !w.Ended() || f.views.Stats().Views != 0 {
			t.Error("the count is still there")
		}
	})
}

// TestManyNumbers takes numbers away in an order that leaves many of them in the heaps.
func TestManyNumbers(t *testing.T) {
	tally := newTally(grouping(t, "s", "n"), 10)
	r := func(n int) stream.Resource {
		return stream.Resource{Value: fmt.Appendf(nil, `{"s":"a","n":%d}`, n)}
	}
	for i := range 1000 {
		tally.add(r(i), 1)
	}
	for i := 499; i > 0; i-- {
		tally.add(r(500-i), -1)
		tally.add(r(500+i), -1)
	}
	g := tally.groups["a"]
	if got, want := tally.value(g), `{"count":2,"sum":500,"min":0,"max":500}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(g.numbers.least.of) > 50 || tally.distinct != 2 {
		t.Errorf("%d numbers are left in a heap, and %d are counted", len(g.numbers.least.of), tally.distinct)
	}
}

// BenchmarkCounts is a change in a watch of a million that moves a resource from group to group, with ten
// counts.
func BenchmarkCounts(b *testing.B) {
	for _, n := range []int{0, 10} {
		b.Run(fmt.Sprint(n, " counts"), func(b *testing.B) {
			f := newUpstream(b, 1_000_000)
			v := New(Config{})
			defer v.Close()
			var all []*watch.Watch
			for i := range n {
				w, err := v.Count(f.watch, grouping(b, fmt.Sprint("team,x", i), []string{"", "n"}[i/5]), Request{})
				if err != nil {
					b.Fatal(err)
				}
				if err := w.Prime(b.Context()); err != nil {
					b.Fatal(err)
				}
				defer w.Follow()()
				all = append(all, w)
			}
			for i := 0; b.Loop(); i++ {
				f.commit(i)
				for _, w := range all {
					if err := w.Prime(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// TestDeclaredCounts: a watch of counts follows another watch, with its revisions, its freshness, and what
// it has after it was away.
func TestDeclaredCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxGroups: 2})
		f.commit(`a={"s":"up","n":1}`, `b={"s":"up","n":2}`)
		declared, err := f.registry.Add(watch.Config{
			Name: "states", Source: f.views.CountSource("w", func() (*watch.Watch, error) { return f.registry.Open("w") }, grouping(t, "s", "n")),
			Backoff: watch.Backoff{Min: time.Second, Max: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expectState(t, declared, `up={"count":2,"sum":3,"min":1,"max":2}`)
		s := subscribe(t, declared, nil)
		s.expect(t, "reset initial", `up={"count":2,"sum":3,"min":1,"max":2}@2`, "end@2")
		f.commit(`a={"s":"down","n":1}`)
		s.expect(t, `down={"count":1,"sum":1,"min":1,"max":1}@3`, `up={"count":1,"sum":2,"min":2,"max":2}@3`)
		f.commit(`a={"s":"down","n":1,"other":1}`)
		if got := declared.Snapshot().Revision(); got != 4 {
			t.Errorf("at revision %d after a commit that changes no group, want 4", got)
		}
		f.endpoint.Say(stream.Stale, "far behind")
		time.Sleep(2 * time.Second)
		s.expect(t, "status stale")
		f.endpoint.Say(stream.InSync, "")
		s.expect(t, "status in_sync")
		f.commit(`c={"s":"lost"}`)
		s.expect(t, "status stale")
		f.commit("c", `b={"s":"up","n":7}`)
		time.Sleep(2 * retryEvery)
		s.read()
		expectState(t, declared, `down={"count":1,"sum":1,"min":1,"max":1}`, `up={"count":1,"sum":7,"min":7,"max":7}`)
		if declared.Status().State != stream.InSync {
			t.Errorf("%v", declared.Status())
		}
		f.upstream.Restore("e2", f.upstream.Oldest())
		f.endpoint.Move()
		f.endpoint.Catch(-1)
		time.Sleep(time.Minute)
		s.read()
		expectState(t, declared, state(f.count(f.base, "s", "n"))...)
	})
}

// TestDeclaredCountsOfTooManyGroups: the watch says why it has no state.
func TestDeclaredCountsOfTooManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{MaxGroups: 1})
		f.commit(`a={"s":1}`, `b={"s":2}`)
		declared, err := f.registry.Add(watch.Config{
			Name: "states", Source: f.views.CountSource("w", func() (*watch.Watch, error) { return f.registry.Open("w") }, grouping(t, "s", "")),
			Backoff: watch.Backoff{Min: time.Second, Max: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if declared.Snapshot().Primed() || !strings.Contains(declared.Upstream().LastError, "the field s has 2 values") {
			t.Errorf("%+v", declared.Upstream())
		}
		f.commit("a")
		time.Sleep(time.Minute)
		expectState(t, declared, `2={"count":1}`)
	})
}

// BenchmarkMakingCounts is the making of a count of a watch of a million.
func BenchmarkMakingCounts(b *testing.B) {
	for _, sum := range []string{"", "n"} {
		b.Run("sum "+sum, func(b *testing.B) {
			f := newUpstream(b, 1_000_000)
			for b.Loop() {
				v := New(Config{})
				w, err := v.Count(f.watch, grouping(b, "team", sum), Request{})
				if err == nil {
					err = w.Prime(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(v.holds()), "bytes")
				v.Close()
			}
		})
	}
}
