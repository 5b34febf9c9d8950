package storage

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTimes: a time that is known is that of the entry's commit, or less than the spacing before
// it; none is invented; and the table is bounded.
func TestTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spacing := CommitSpacing(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "max age")))
		now, seq := time.Unix(1_700_000_000, 0), uint64(0)
		var times CommitTimes
		var made []time.Time // by seq - 1; zero: of a snapshot
		for range rapid.IntRange(1, 3000).Draw(t, "commits") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*spacing)).Draw(t, "pause")))
			at := now
			if rapid.IntRange(0, 50).Draw(t, "snapshot") == 0 {
				at = time.Time{}
			}
			times = times.Add(seq+1, at, !at.IsZero(), spacing)
			for range rapid.IntRange(1, 3).Draw(t, "entries") {
				seq++
				made = append(made, at)
			}
		}
		if len(times) > mostTimes || times.Bytes() > 2*mostTimes*16 {
			t.Fatalf("%d times, %d bytes", len(times), times.Bytes())
		}
		for i, want := range made {
			got, known := times.Of(uint64(i) + 1)
			if known && (want.IsZero() || got.After(want) || want.Sub(got) >= spacing) {
				t.Fatalf("entry %d of %v: %v", i+1, want, got)
			}
		}
		if _, known := times.Of(seq); known == made[len(made)-1].IsZero() {
			t.Fatalf("the newest entry of %v: known is %t", made[len(made)-1], known)
		}
	})
}

// TestOlderTimesStay: a value is not changed by what is added to it later.
func TestOlderTimesStay(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	var times CommitTimes
	for i := range uint64(mostTimes) {
		times = times.Add(i+1, begin.Add(time.Duration(i)*time.Second), true, time.Second)
	}
	older := times
	for i := range uint64(mostTimes) {
		times = times.Add(mostTimes+i+1, begin.Add(time.Duration(mostTimes+i)*time.Second), true, time.Second)
	}
	for i := range uint64(mostTimes) {
		if at, known := older.Of(i + 1); !known || !at.Equal(begin.Add(time.Duration(i)*time.Second)) {
			t.Fatalf("entry %d: %v %t", i+1, at, known)
		}
	}
	if _, known := times.Of(1); known {
		t.Error("the oldest time is kept")
	}
}
