package commands

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCollectorPercent: what watches hold costs a quarter of it in garbage, 32 MiB at least, and
// all else as much again.
func TestCollectorPercent(t *testing.T) {
	const mega = 1 << 20
	for _, c := range []struct {
		live, held int64
		want       int
	}{
		{0, 0, 100},
		{500 * mega, 0, 100},
		{40 * mega, 32 * mega, 100},
		{64 * mega, 64 * mega, 50},
		{200 * mega, 200 * mega, 25},
		{400 * mega, 200 * mega, 62},
		{200 * mega, 900 * mega, 25}, // since the last collection
		{4000 * mega, 40 * mega, 99},
	} {
		if got := collectorPercent(c.live, c.held); got != c.want {
			t.Errorf("%d MiB, of which watches hold %d: %d %%, want %d", c.live/mega, c.held/mega, got, c.want)
		}
	}
}

// TestPace: the collector is told of large changes, and at once that all is as usual.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mega = 1 << 20
		ctx, cancel := context.WithCancel(t.Context())
		var held atomic.Int64
		var told []int
		go pace(ctx, func() int64 { return 200 * mega }, held.Load, func(percent int) { told = append(told, percent) })
		for _, n := range []int64{0, 10, 34, 120, 121, 122, 200, 33, 20, 20} {
			held.Store(n * mega)
			time.Sleep(collectEvery)
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		if want := []int{56, 25, 99, 100}; !slices.Equal(told, want) {
			t.Errorf("the collector was told %d, want %d", told, want)
		}
	})
}
