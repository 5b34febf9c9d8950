package shard

import (
	"slices"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/internal/frame"
)

// TestReportOfACrowd checks that a shard with very many streams reports in
// slices, between which its streams have their turn, and that the oldest are
// found.
func TestReportOfACrowd(t *testing.T) {
	const size, limit = 3*introspection.ReportedAtOnce + 1, 300
	c := newCrowd(t, size, 1)
	count, all := listOf(c.deps, c.shards, "watch-0", limit)
	if count != size || len(all) != limit {
		t.Fatalf("%d listed of %d, want %d of %d", len(all), count, limit, size)
	}
	if !slices.IsSortedFunc(all, func(a, b introspection.Subscriber) int { return a.Since.Compare(b.Since) }) {
		t.Error("the oldest are not first")
	}
	s := c.shards.all[0]
	turns, slices := 0, 0
	var r introspection.Slice
	found := 0
	for from := int32(0); from >= 0; slices++ {
		s.ask(func() {
			from = s.answer(&r, from)
			turns++
			found = len(r.Streams) // a slice that is not cleared grows
		})
	}
	if slices != 4 || turns != 4 || found != size {
		t.Errorf("%d streams in %d slices", found, slices)
	}
	if count, all := listOf(c.deps, c.shards, "other", limit); count != 0 || len(all) != 0 {
		t.Errorf("of another watch: %d, %+v", count, all)
	}
}

// BenchmarkReport measures the list of a hundred of very many subscribers.
func BenchmarkReport(b *testing.B) {
	c := newCrowd(b, 20_000, 1)
	for b.Loop() {
		if count, _ := listOf(c.deps, c.shards, "", 100); count != c.size {
			b.Fatal(count)
		}
	}
}

// BenchmarkReportSlice measures how long a shard is busy with one slice.
func BenchmarkReportSlice(b *testing.B) {
	c := newCrowd(b, introspection.ReportedAtOnce, 1)
	s := c.shards.all[0]
	r := introspection.NewSlice()
	b.ReportAllocs()
	for b.Loop() {
		r.Clear()
		s.answer(r, 0) // nothing else happens in the shard
		if len(r.Streams) != introspection.ReportedAtOnce {
			b.Fatal(len(r.Streams))
		}
	}
}

// BenchmarkCensus measures the groups of very many subscribers.
func BenchmarkCensus(b *testing.B) {
	c := newCrowd(b, 20_000, 1)
	for _, by := range introspection.Kinds {
		b.Run(string(by), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if census := introspection.TakeCensus(c.deps.Subscribers, c.shards.Carriers(), by, 50); census.All.Count != c.size {
					b.Fatal(census.All.Count)
				}
			}
		})
	}
}

// BenchmarkLags measures how long a shard is busy with the lags of 2,048 streams of 32 watches, of
// which each is in another group than the one before it.
func BenchmarkLags(b *testing.B) {
	c := newCrowd(b, 2, 32)
	c.sockets.expect(introspection.ReportedAtOnce, []byte(`"watch":"watch-0","revision":"2","count":1`))
	for i := range introspection.ReportedAtOnce {
		c.arrive(b, c.size+i, session.Request{Format: []frame.Format{frame.SSE, frame.NDJSON}[i%2], Watches: c.names})
	}
	<-c.sockets.done
	c.size += introspection.ReportedAtOnce
	c.change(nil)
	s := c.shards.all[0]
	for b.Loop() {
		l := introspection.WatchLags{}
		for from := int32(0); from >= 0; {
			s.ask(func() { from = s.addLags(l, from) })
		}
		if len(l) != 0 {
			b.Fatal("of streams that have everything: ", l)
		}
	}
}
