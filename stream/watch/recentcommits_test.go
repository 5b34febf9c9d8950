package watch

import (
	"testing"
	"time"
)

// TestRecentCommits checks which commits are remembered, and for how long.
func TestRecentCommits(t *testing.T) {
	var r recentCommits
	start := time.Now()
	after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	r.add(1, start)
	if _, known := r.find(1, start); known {
		t.Error("a commit before the first question is known")
	}
	r.add(10, after(100))
	r.add(11, after(110)) // too close to be kept
	r.add(20, after(200))
	for revision, want := range map[uint64]int{10: 100, 11: 100, 15: 100, 20: 200} {
		if at, known := r.find(revision, after(300)); !known || !at.Equal(after(want)) {
			t.Errorf("revision %d: %v after the start, %t", revision, at.Sub(start), known)
		}
	}
	for _, revision := range []uint64{9, 21} {
		if _, known := r.find(revision, after(300)); known {
			t.Errorf("revision %d is known", revision)
		}
	}
	if _, known := r.find(10, after(100).Add(commitMemory+1)); known {
		t.Error("an old commit is known")
	}
	for i := range 10_000 {
		r.add(uint64(100+i), after(1000+20*i))
	}
	if n, most := len(r.commits), int(commitMemory/commitSpacing)+1; n == 0 || n > most {
		t.Errorf("%d commits are kept, want at most %d", n, most)
	}
	r.clear()
	if _, known := r.find(100+9_999, after(1000+20*10_000)); known {
		t.Error("a commit of another order is known")
	}
}
