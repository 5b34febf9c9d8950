package views

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/view"
)

// windowsOf returns the parameters of 100 windows of 50 resources: 10 windows of each of 10 orders.
func windowsOf(column string) func(i int) view.Params {
	return func(i int) view.Params {
		order := fmt.Sprintf("%s,x%d", column, i%10)
		return view.Params{Order: order, Limit: "50", Offset: fmt.Sprint(i / 10 * 50)}
	}
}

// BenchmarkWindows measures a commit of one resource of many until 100 windows of 10 orders have it: none
// of the members by which they are sorted has changed, or one has, so that each window changes.
func BenchmarkWindows(b *testing.B) {
	resources := 1_000_000
	if testing.Short() {
		resources = 100_000
	}
	for _, c := range []struct {
		name   string
		n      int
		params func(int) view.Params
	}{{"none", 1, func(int) view.Params { return view.Params{Prefix: "k/0"} }}, {"untouched", 100, windowsOf("team")}, {"touched", 100, windowsOf("-n")}} {
		b.Run(c.name, func(b *testing.B) {
			f := newUpstream(b, resources)
			before := time.Now()
			all, v := openAll(b, f, c.params, c.n)
			b.Logf("%d views in %v, %d MiB", v.Stats().Views, time.Since(before).Round(time.Millisecond), v.Stats().Bytes>>20)
			i := 0
			for b.Loop() {
				i++
				f.commit(i * 7919 % resources)
				if i%64 == 0 {
					reach(f, func() uint64 { return all[0].Snapshot().Revision() })
				}
			}
			reach(f, func() uint64 { return all[0].Snapshot().Revision() })
		})
	}
}

// BenchmarkOrder measures how long it takes until there is a window of a new order, by a number, while the watch has no changes, and
// while it has some, and while another watch has some. p99-ms is how long these take until a view has them, at most, for 99 of 100 of them.
func BenchmarkOrder(b *testing.B) {
	resources := 1_000_000
	if testing.Short() {
		resources = 100_000
	}
	for _, c := range []struct {
		name    string
		changes bool // while the order is built
		other   bool // of another watch
		builds  bool
	}{
		{"quiet", false, false, true}, {"changes", true, false, true}, {"changes alone", true, false, false},
		{"changes of another watch", true, true, true}, {"changes of another watch alone", true, true, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newUpstream(b, resources)
			all, v := openAll(b, f, func(int) view.Params { return view.Params{Prefix: "k/0"} }, 1)
			changed, seen := f, all[0]
			if c.other {
				changed = newUpstream(b, 1000)
				others, _ := openAll(b, changed, func(int) view.Params { return view.Params{Prefix: "k/0"} }, 1)
				seen = others[0]
			}
			var took []time.Duration
			i := 0
			for b.Loop() {
				i++
				before := v.Stats().Bytes
				built := make(chan error, 1)
				go func() {
					if !c.builds {
						time.Sleep(2 * time.Second)
						built <- nil
						return
					}
					w, err := v.Open(f.watch, ordered(b, fmt.Sprintf("-load,x%d", i), 50, 0), Request{Client: "c"})
					if err == nil {
						err = w.Prime(b.Context())
					}
					built <- err
				}()
				for done := false; !done; {
					select {
					case err := <-built:
						if done = true; err != nil {
							b.Fatal(err)
						}
					case <-time.After(5 * time.Millisecond):
						if c.changes {
							began := time.Now()
							news := seen.Changed()
							changed.commit(0)
							<-news
							took = append(took, time.Since(began))
						}
					}
				}
				if i == 1 && c.builds { // later ones take the place of others
					b.ReportMetric(float64(v.Stats().Bytes-before)/float64(resources), "B/resource")
				}
			}
			if slices.Sort(took); len(took) > 0 {
				b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
				b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
			}
		})
	}
}

// reach waits until a view has the newest revision.
func reach(f *upstream, revision func() uint64) {
	for revision() < f.revision {
		runtime.Gosched()
	}
}
