package log

import (
	"fmt"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestPrefixCountsAreOfTheirVersion: a cached count is never used for another
// version, revision order or prefix, whatever else is counted.
func TestPrefixCountsAreOfTheirVersion(t *testing.T) {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 1, upsert("a/1", 1), upsert("b/1", 1))
	old := l.Snapshot()
	var counting sync.WaitGroup
	for range 4 {
		counting.Go(func() {
			for i := range 200 {
				if got := old.countPrefix("a/"); got != 1 {
					t.Errorf("in the old version: got %d", got)
				}
				l.Snapshot().countPrefix(fmt.Sprint("none/", i%30))
			}
		})
	}
	for i := uint64(2); i < 100; i++ {
		mustCommit(t, l, i, upsert(fmt.Sprint("a/", i), i))
		for range 2 {
			if a, b := l.Snapshot().countPrefix("a/"), l.Snapshot().countPrefix("b/"); a != int(i) || b != 1 {
				t.Fatalf("at %d: got %d and %d", i, a, b)
			}
		}
	}
	counting.Wait()
	mustReplace(t, l, "e2", 1, upsert("a/1", 1))
	if got := l.Snapshot().countPrefix("a/"); got != 1 {
		t.Errorf("in the new order: got %d", got)
	}
}

// BenchmarkResumeWithPrefix resumes a reader of 100,000 resources, of which it wants
// a few.
func BenchmarkResumeWithPrefix(b *testing.B) {
	l := NewWriter(Config{Watch: "w"})
	var all []Change
	for i := uint64(1); i <= 100_000; i++ {
		all = append(all, upsert(fmt.Sprint("k/", i), i))
	}
	mustReplace(b, l, "e", 100_000, all...)
	at := stream.Position{Watch: "w", Epoch: stream.NarrowEpoch("e", "k/1"), Upserts: 100_000, AsOf: 100_000}
	var batch Batch
	for b.Loop() {
		s := l.Subscribe(SubscribeOptions{Prefix: "k/1", Resume: &at})
		for s.Next(&batch) {
		}
		if s.Outcome() != OutcomeExact {
			b.Fatal(s.Outcome())
		}
		s.Close()
	}
}
