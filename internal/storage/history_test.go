package storage

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRecent: whatever is added and forgotten, the bytes are those that were superseded
// after the mark, the mark does not fall, and little is forgotten at a time.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxAge = time.Hour
		type commit struct {
			after uint64
			at    time.Time
			bytes int64
		}
		var r Superseded
		var commits []commit
		head, mark, peak, now := uint64(7), uint64(0), int64(0), time.Now()
		since := func(mark uint64) (bytes, largest int64) {
			for _, c := range commits {
				if c.after >= mark {
					bytes, largest = bytes+c.bytes, max(largest, c.bytes)
				}
			}
			return bytes, largest
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				sizes := rapid.SampledFrom([][]int64{{1}, {300}, {0, 1, 300, 300, 5000}, {0, 1 << 20}}).Draw(t, "bytes")
				pauses := rapid.SampledFrom([][]time.Duration{{0}, {0, time.Second}, {time.Minute}}).Draw(t, "pauses")
				for i := range rapid.IntRange(1, 200).Draw(t, "commits") {
					c := commit{head, now, sizes[i%len(sizes)]}
					r.Add(c.after, c.bytes, c.at, maxAge)
					commits = append(commits, c)
					head += 1 + uint64(c.bytes/300)
					now = now.Add(pauses[i%len(pauses)])
				}
			},
			"forget": func(t *rapid.T) {
				if r.Bytes() == 0 {
					t.Skip("nothing to forget")
				}
				before, largest := since(r.Mark(head))
				r.Forget()
				if after, _ := since(r.Mark(head)); before-after > peak/8+largest {
					t.Errorf("%d of %d bytes are forgotten at once; the largest commit has %d", before-after, before, largest)
				}
			},
			"grow old": func(*rapid.T) {
				r.ForgetBefore(now.Add(-maxAge))
				for _, c := range commits {
					if c.after >= r.Mark(head) && c.bytes > 0 && now.Sub(c.at) > maxAge {
						t.Errorf("a commit of %v ago is recent", now.Sub(c.at))
					}
				}
			},
			"": func(*rapid.T) {
				if bytes, _ := since(r.Mark(head)); bytes != r.Bytes() {
					t.Fatalf("%d bytes are counted after the mark, there are %d", r.Bytes(), bytes)
				}
				peak = max(peak, r.Bytes())
				if m := r.Mark(head); m < mark {
					t.Fatalf("the mark falls from %d to %d", mark, m)
				}
				if mark = r.Mark(head); len(r.stretches) > most || len(r.stretches) == 0 && mark != head {
					t.Fatalf("%d stretches, the mark is %d of %d", len(r.stretches), mark, head)
				}
			},
		})
	})
}

// TestRecentGrowsOldBySlices: of a long time with little change, what is too old is
// forgotten, and not much more.
func TestRecentGrowsOldBySlices(t *testing.T) {
	var r Superseded
	now := time.Now()
	for seq := range uint64(10_000) {
		now = now.Add(time.Second)
		r.Add(seq, 100, now, time.Hour)
		r.ForgetBefore(now.Add(-time.Hour))
	}
	if n := r.Bytes() / 100; n < 3300 || n > 3601 {
		t.Errorf("%d changes of the last 3,600 are recent", n)
	}
}

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
