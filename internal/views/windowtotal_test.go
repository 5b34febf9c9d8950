package views

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
)

// TestWindowTellsItsTotal: readers are told of a new total with the change, and then once a second.
func TestWindowTellsItsTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		s := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `a={"n":1}@2`, "end@2 of 2")
		f.commit(`c={"n":3}`)
		wantLines(t, "one comes behind the window", s.lines(), "bookmark@3 of 3")
		f.commit(`d={"n":4}`)
		f.commit(`e={"n":5}`)
		wantLines(t, "others come within the second", s.lines())
		time.Sleep(999 * time.Millisecond)
		wantLines(t, "the second is not over", s.lines())
		time.Sleep(time.Millisecond)
		wantLines(t, "the second is over", s.lines(), "bookmark@5 of 5")
		f.commit(`b={"n":2.5}`)
		time.Sleep(time.Minute)
		wantLines(t, "one behind the window changes its place", s.lines())
		f.commit(`0={"n":0}`)
		wantLines(t, "one comes into the window", s.lines(), "-a@7 left", `0={"n":0}@7`, "bookmark@7 of 6")
		late := subscribe(t, f.open(ordered(t, "n", 1, 0), "c"), nil)
		wantLines(t, "a reader that comes late", late.lines(), "reset initial", `0={"n":0}@7`, "end@7 of 6")
		f.commit(`0=`)
		wantLines(t, "one leaves within the second", s.lines(), "-0@8", `a={"n":1}@2`)
		time.Sleep(time.Second)
		wantLines(t, "the second is over again", s.lines(), "bookmark@8 of 5")
		wantLines(t, "the reader that came late", late.lines(), "-0@8", `a={"n":1}@2`, "bookmark@8 of 5")
	})
}

// TestWindowTellsItsTotalInTicks: a reader with an interval is told in its ticks.
func TestWindowTellsItsTotalInTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		w := f.open(ordered(t, "n", 1, 0), "c")
		s := &subscriber{Subscription: w.Subscribe(log.SubscribeOptions{Interval: 10 * time.Second})}
		defer s.Close()
		wantLines(t, "the snapshot", s.lines(), "reset initial", `a={"n":1}@2`, "end@2 of 2")
		f.commit(`c={"n":3}`)
		wantLines(t, "a change after a quiet time", s.lines(), "bookmark@3 of 3")
		time.Sleep(2 * time.Second)
		f.commit(`0={"n":0}`)
		wantLines(t, "a change within the tick", s.lines())
		if got := s.Deadline(); time.Until(got) > 8*time.Second {
			t.Errorf("the reader is to look again in %v", time.Until(got))
		}
		time.Sleep(8 * time.Second)
		wantLines(t, "the next tick", s.lines(), "-a@4", `0={"n":0}@4`, "bookmark@4 of 4")
	})
}

// TestRatesLeaveOutWhatCameAndWent: a reader with an interval is not sent the deletes of what was in a window, or of groups of a count, only between its ticks.
func TestRatesLeaveOutWhatCameAndWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":9}`)
		rated := log.SubscribeOptions{Interval: 10 * time.Second}
		window := &subscriber{Subscription: f.open(ordered(t, "n", 1, 0), "c").Subscribe(rated)}
		defer window.Close()
		counts := &subscriber{Subscription: f.count(f.base, "n", "").Subscribe(rated)}
		defer counts.Close()
		window.lines()
		counts.lines()
		f.commit(`a={"n":8}`) // after a quiet time
		window.lines()
		counts.lines()
		for n := 7; n > 0; n-- {
			f.commit(fmt.Sprintf(`b%d={"n":%d}`, n, n), fmt.Sprintf("b%d", n+1))
		}
		wantLines(t, "changes within the tick", window.lines())
		wantLines(t, "changes of groups within the tick", counts.lines())
		time.Sleep(10 * time.Second)
		wantLines(t, "the next tick of the window", window.lines(), "-a@4", `b1={"n":1}@10`, "bookmark@10 of 2")
		wantLines(t, "the next tick of the counts", counts.lines(), `1={"count":1}@10`, "bookmark@10")
	})
}

// TestWindowTellsNothingTwice: a reader that was told with changes what the window says is not told again a second after the
// last time.
func TestWindowTellsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`, `b={"n":2}`)
		w := f.open(ordered(t, "n", 1, 0), "c")
		follow := func(interval time.Duration) *subscriber {
			s := &subscriber{Subscription: w.Subscribe(log.SubscribeOptions{Interval: interval})}
			t.Cleanup(s.Close)
			return s
		}
		s, other := follow(500*time.Millisecond), follow(0)
		for _, s := range []*subscriber{s, other} {
			wantLines(t, "the snapshot", s.lines(), "reset initial", `a={"n":1}@2`, "end@2 of 2")
		}
		f.commit(`c={"n":3}`)
		for _, s := range []*subscriber{s, other} {
			wantLines(t, "a change after a quiet time", s.lines(), "bookmark@3 of 3")
		}
		f.commit(`0={"n":0}`)
		wantLines(t, "a change without a tick", other.lines(), "-a@4 left", `0={"n":0}@4`)
		f.commit(`0={"n":0.5}`)
		time.Sleep(500 * time.Millisecond)
		wantLines(t, "the next tick", s.lines(), "-a@4", `0={"n":0.5}@5`, "bookmark@5 of 4")
		time.Sleep(time.Minute)
		wantLines(t, "later", s.lines())
		wantLines(t, "later, without ticks", other.lines(), `0={"n":0.5}@5`, "bookmark@5 of 4")
		f.commit(`d={"n":4}`)
		wantLines(t, "another change", s.lines(), "bookmark@6 of 5")
	})
}

// TestTotalOfACostlyFilter: an order that builders feed tells its readers too, although its watch is at rest.
func TestTotalOfACostlyFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`)
		d := definition(t, view.Params{Filter: `value.exists(k, k == "n")`, Order: "n", Limit: "1"})
		s := subscribe(t, f.open(d, "c"), nil)
		wantLines(t, "the snapshot", s.lines(), "reset initial", `a={"n":1}@2`, "end@2 of 1")
		f.commit(`b={"n":2}`)
		wantLines(t, "one comes behind the window", s.lines(), "bookmark@3 of 2")
		f.commit(`c={"n":3}`)
		wantLines(t, "another one comes within the second", s.lines())
		time.Sleep(time.Second)
		wantLines(t, "a second later", s.lines(), "bookmark@4 of 3")
	})
}
