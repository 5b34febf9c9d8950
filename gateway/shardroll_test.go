package gateway

import (
	"slices"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/subscribers"
)

// TestRollOfACrowd checks that a shard with very many streams is asked in slices,
// between which its streams have their turn, and that the oldest are found.
func TestRollOfACrowd(t *testing.T) {
	onShards(t)
	const size, limit = 3*subscribers.ReportedAtOnce + 1, 300
	c := newCrowd(t, size, 1)
	o := c.gateway.overview("watch-0", limit, c.watches)
	if o.Count != size || len(o.Subscribers) != limit {
		t.Fatalf("%d listed of %d, want %d of %d", len(o.Subscribers), o.Count, limit, size)
	}
	if !slices.IsSortedFunc(o.Subscribers, func(a, b subscribers.Subscriber) int { return a.Since.Compare(b.Since) }) {
		t.Error("the oldest are not first")
	}
	s := c.gateway.shards.all[0]
	turns, slices := 0, 0
	r := subscribers.Query{Limit: limit}
	for from := int32(0); from >= 0; slices++ {
		s.ask(func() {
			from = s.answer(&r, from)
			turns++
		})
	}
	if slices != 4 || turns != 4 || r.Count != size {
		t.Errorf("%d streams in %d slices", r.Count, slices)
	}
	if got := c.gateway.overview("other", limit, nil); got.Count != 0 || len(got.Subscribers) != 0 {
		t.Errorf("of another watch: %+v", got)
	}
}

// BenchmarkRoll measures the list of a hundred of very many subscribers.
func BenchmarkRoll(b *testing.B) {
	onShards(b)
	c := newCrowd(b, 20_000, 1)
	for b.Loop() {
		if o := c.gateway.overview("", defaultListed, c.watches); o.Count != c.size {
			b.Fatal(o.Count)
		}
	}
}

// BenchmarkRollSlice measures how long a shard answers at once.
func BenchmarkRollSlice(b *testing.B) {
	onShards(b)
	c := newCrowd(b, subscribers.ReportedAtOnce, 1)
	s := c.gateway.shards.all[0]
	b.ReportAllocs()
	for b.Loop() {
		r := subscribers.Query{Limit: defaultListed, Best: make([]subscribers.Candidate, 0, defaultListed+subscribers.ReportedAtOnce)}
		s.answer(&r, 0) // nothing else happens in the shard
		if r.Count != subscribers.ReportedAtOnce {
			b.Fatal(r.Count)
		}
	}
}
