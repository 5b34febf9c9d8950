package introspection

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBucketsAreInOrder checks that each bucket ends where the next one starts, and has what is
// in between.
func TestBucketsAreInOrder(t *testing.T) {
	for i := range buckets {
		from, to := startOf(i), startOf(i+1)
		if from >= to {
			t.Fatalf("bucket %d is from %v to %v", i, from, to)
		}
		if bucketOf(from) != i || bucketOf(to-1) != i {
			t.Errorf("bucket %d, from %v to %v: its ends are in %d and %d", i, from, to, bucketOf(from), bucketOf(to-1))
		}
	}
	for d, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, time.Microsecond: 0, time.Hour: buckets - 1, math.MaxInt64: buckets - 1} {
		if got := bucketOf(d); got != want {
			t.Errorf("%v: bucket %d, want %d", d, got, want)
		}
	}
}

// TestQuantilesAreNear checks that a quantile is off by no more than its bucket is wide.
func TestQuantilesAreNear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(1<<lowest, 1<<highest-1), 1, 200).Draw(t, "durations")
		share := rapid.SampledFrom([]float64{.5, .9, .99, 1}).Draw(t, "share")
		var d distribution
		for _, one := range all {
			d.of[bucketOf(time.Duration(one))]++
			d.all++
		}
		slices.Sort(all)
		want := float64(all[max(0, int(math.Ceil(share*float64(len(all))))-1)]) / 1e6
		if got := float64(d.quantile(share)); math.Abs(got-want) > want/steps*1.001 {
			t.Errorf("%v of %v: %v ms, want about %v", share, all, got, want)
		}
	})
	if got := (&distribution{}).quantile(.5); got == got {
		t.Errorf("of nothing: %v", got)
	}
}

// TestTallyLosesNothing checks that everything that is counted while others take is taken once.
func TestTallyLosesNothing(t *testing.T) {
	const goroutines, each = 4, 2000
	tally := &Tally{}
	var sum counts
	var writers sync.WaitGroup
	for range goroutines {
		writers.Go(func() {
			for i := range each {
				tally.Sent(2, 10)
				tally.Written(time.Duration(i) * time.Microsecond)
				tally.Delivered(time.Second)
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		default:
		}
		var c counts
		tally.take(&c)
		sum.then(&c)
	}
	if n := uint64(goroutines * each); sum.events != 2*n || sum.bytes != 10*n || sum.latency.all != n || sum.delivery.all != n {
		t.Errorf("%d events, %d bytes, %d and %d durations", sum.events, sum.bytes, sum.latency.all, sum.delivery.all)
	}
	var none *Tally
	none.Sent(1, 1)
	none.Written(1)
	none.Delivered(1)
}

func BenchmarkTally(b *testing.B) {
	tally := &Tally{}
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			tally.Sent(1, 100)
			tally.Written(time.Millisecond)
		}
	})
}
