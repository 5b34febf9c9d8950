package introspection

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// naiveHour is an hour as a map of everything that was ever added.
type naiveHour struct {
	seconds map[int64]counts
	newest  int64
}

// of returns the sample of an interval of some seconds, by looking at all that was added.
func (n *naiveHour) of(interval, step, kept int64) sample {
	if interval > n.newest/step || interval <= n.newest/step-kept {
		return sample{}
	}
	var sum *counts
	for second := interval * step; second < (interval+1)*step; second++ {
		c, there := n.seconds[second]
		switch {
		case there && sum == nil:
			sum = &c
		case there:
			sum.then(&c)
		}
	}
	if sum == nil {
		return sample{}
	}
	return sum.sample()
}

// TestHourIsLikeANaiveOne checks that an hour has the samples of a map that keeps everything, for
// seconds with gaps of any length.
func TestHourIsLikeANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, naive := &hour{}, &naiveHour{seconds: map[int64]counts{}}
		second := rapid.Int64Range(1_000_000, 2_000_000_000).Draw(t, "start")
		for range rapid.IntRange(1, 60).Draw(t, "blocks") {
			second += rapid.SampledFrom([]int64{0, 0, 0, 1, 3, 9, 10, 11, 299, 300, 301, 3599, 3600, 3700, 86_400}).Draw(t, "gap")
			for range rapid.SampledFrom([]int{1, 2, 9, 10, 25}).Draw(t, "run") {
				second++
				c := randomCounts(t)
				h.add(second, &c)
				naive.seconds[second], naive.newest = c, second
			}
		}
		compare(t, naive, fineStep, fineKept, span(h.fine[:], h.newest[0], second-2*fineKept, second+5), second-2*fineKept)
		tens := second / coarseStep
		compare(t, naive, coarseStep, coarseKept, span(h.coarse[:], h.newest[1], tens-2*coarseKept, tens+5), tens-2*coarseKept)
	})
}

func randomCounts(t *rapid.T) counts {
	c := counts{
		seconds: rapid.Float64Range(.5, 3).Draw(t, "seconds"), changes: rapid.Uint64Max(1e6).Draw(t, "changes"),
		lag: rapid.Uint64().Draw(t, "lag"), subscribers: rapid.Uint64Max(100).Draw(t, "subscribers"),
		state: State(rapid.IntRange(int(Idle), int(Stale)).Draw(t, "state")),
	}
	n := rapid.IntRange(0, 3).Draw(t, "deliveries")
	c.latency.of[rapid.IntRange(0, buckets-1).Draw(t, "bucket")], c.latency.all = uint32(n), uint64(n)
	return c
}

func compare(t *rapid.T, naive *naiveHour, step, kept int64, got []sample, from int64) {
	for i, s := range got {
		want := naive.of(from+int64(i), step, kept)
		if fmt.Sprint(s) != fmt.Sprint(want) { // NaN is equal to NaN as text only
			t.Fatalf("step %d, interval %d: %+v, want %+v", step, from+int64(i), s, want)
		}
	}
}

// TestHourIsSmall checks what README.md says of the memory.
func TestHourIsSmall(t *testing.T) {
	if hourBytes > 28<<10 {
		t.Errorf("an hour takes %d bytes", hourBytes)
	}
}

// TestNumbersAreShort checks the text of figures.
func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float32]string{
		unknownValue: "null", 0: "0", 1: "1", 12: "12", 1234567: "1234567", 1234.5: "1235", 999.94: "999.9", 123.46: "123.5", 12.345: "12.35", 1.2345: "1.235",
		0.12345: "0.1235", 0.00004: "0",
	} {
		got, err := numbers{v}.MarshalJSON()
		if err != nil || string(got) != "["+want+"]" {
			t.Errorf("%v: %s, want [%s]", v, got, want)
		}
	}
	if s := (&counts{seconds: 1, changes: math.MaxUint64, lag: math.MaxUint64, subscribers: math.MaxUint64}).sample(); s.lag != math.MaxUint32 {
		t.Errorf("%+v", s)
	}
}
