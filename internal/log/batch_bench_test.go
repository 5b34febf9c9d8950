package log

import (
	"fmt"
	"testing"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// BenchmarkCommitBatch measures a commit and its bytes for one subscriber.
// BenchmarkUpsert measures the commit alone.
func BenchmarkCommitBatch(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("changes=%d", n), func(b *testing.B) {
			keys := benchKeys(100_000)
			l := benchLog(b, keys)
			s := l.Subscribe(SubscribeOptions{})
			defer s.Close()
			var batch Batch
			for s.Next(&batch) {
			}
			random, changes := randomKeys(keys, 1<<16), make([]Change, n)
			revision, at, bytes := uint64(len(keys)), 0, 0
			var out [][]byte
			b.ReportAllocs()
			for b.Loop() {
				for i := range changes {
					revision++
					at = (at + 1) % len(random)
					changes[i].Resource = stream.Resource{Key: random[at], Revision: revision, Value: benchValue}
				}
				if _, err := l.Commit(changes, revision); err != nil {
					b.Fatal(err)
				}
				if bytes, out = renderAll(s, &batch, out); bytes < n*len(benchValue) {
					b.Fatalf("%d bytes of %d changes", bytes, n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/change")
		})
	}
}

// renderAll renders everything that a subscription has, and returns the number of
// bytes.
func renderAll(s *Subscription, batch *Batch, out [][]byte) (bytes int, reuse [][]byte) {
	for s.Next(batch) {
		out = batch.Append(out[:0], frame.SSE, benchID)
		for _, p := range out {
			bytes += len(p)
		}
	}
	return bytes, out
}

var benchID = []byte("services@e-100000")

// BenchmarkSnapshotBatch finds and renders one batch of a snapshot of 100,000.
func BenchmarkSnapshotBatch(b *testing.B) {
	l := benchLog(b, benchKeys(100_000))
	s := l.Subscribe(SubscribeOptions{})
	var batch Batch
	var out [][]byte
	bytes := 0
	b.ReportAllocs()
	for b.Loop() {
		if !s.Next(&batch) {
			s.Close()
			s = l.Subscribe(SubscribeOptions{})
			continue
		}
		out = batch.Append(out[:0], frame.SSE, benchID)
		for _, p := range out {
			bytes += len(p)
		}
	}
	s.Close()
	b.SetBytes(int64(bytes / b.N))
}

// BenchmarkResume resumes a subscriber from a position some changes ago, among
// 100,000 resources, and delivers them.
func BenchmarkResume(b *testing.B) {
	for _, behind := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("behind=%d", behind), func(b *testing.B) {
			keys := benchKeys(100_000)
			l := benchLog(b, keys)
			from := l.Snapshot().Position()
			for i := range behind {
				revision := uint64(len(keys) + i + 1)
				change := Change{Resource: stream.Resource{Key: keys[i*97], Revision: revision, Value: benchValue}}
				if _, err := l.Commit([]Change{change}, revision); err != nil {
					b.Fatal(err)
				}
			}
			var batch Batch
			var out [][]byte
			b.ReportAllocs()
			for b.Loop() {
				s := l.Subscribe(SubscribeOptions{Resume: &from})
				_, out = renderAll(s, &batch, out)
				if s.Outcome() != OutcomeExact {
					b.Fatalf("the outcome is %q", s.Outcome())
				}
				s.Close()
			}
		})
	}
}
