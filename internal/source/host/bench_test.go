package host

import (
	"context"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// BenchmarkPoll is one poll of this machine, in which only actual changes are
// sent. core_percent is its cost at the default interval.
func BenchmarkPoll(b *testing.B) {
	for _, collection := range []string{Processes, Interfaces, Mounts} {
		b.Run(collection, func(b *testing.B) {
			s := mustNew(b, collection)
			sink := &countingSink{}
			ctx := context.Background()
			if err := s.catchUp(ctx, stream.Resume{}, sink); err != nil {
				b.Fatal(err)
			}
			resources := len(s.last)
			*sink = countingSink{}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.poll(ctx, sink); err != nil {
					b.Fatal(err)
				}
			}
			perPoll := float64(b.Elapsed()) / float64(b.N)
			b.ReportMetric(float64(resources), "resources")
			b.ReportMetric(float64(sink.changes)/float64(b.N), "changes/op")
			b.ReportMetric(100*perPoll/float64(DefaultInterval), "core_percent")
		})
	}
}

// countingSink counts changes and stores nothing.
type countingSink struct {
	stream.PlainSink
	changes int
}

func (c *countingSink) Reset(string) error                { return nil }
func (c *countingSink) Upsert(stream.Resource) error      { c.changes++; return nil }
func (c *countingSink) Delete(string, uint64) error       { c.changes++; return nil }
func (c *countingSink) Commit(uint64) error               { return nil }
func (c *countingSink) Status(stream.State, string) error { return nil }
