package views

import (
	"fmt"
	"runtime"
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

// reach waits until a view has the newest revision.
func reach(f *upstream, revision func() uint64) {
	for revision() < f.revision {
		runtime.Gosched()
	}
}
