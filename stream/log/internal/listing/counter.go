package listing

import (
	"runtime"

	"github.com/watchtide/watchtide/stream/log/internal/segment"
	"github.com/watchtide/watchtide/stream/log/internal/version"
)

// prefixCount is how many resources of one version have keys with a prefix. It is
// cached because counting looks at every entry, and very many readers may come back
// at the same time, all to the same version.
type prefixCount struct {
	generation, seq uint64 // of the version
	prefix          string
	count           int
}

// maxPrefixCounts is how many are cached, newest first.
const maxPrefixCounts = 16

// Count is the number of resources of v whose key begins with prefix.
func (c *Cache) Count(v *version.Version, f *segment.Format, prefix string) int {
	n := NewCounter(v)
	for !c.CountSome(v, f, prefix, n) {
		runtime.Gosched()
	}
	return n.N
}

// Counter is a count under way.
type Counter struct {
	// N is what was counted so far.
	N int

	generation, seq uint64        // of the version
	at              version.Place // next entry to examine
}

// NewCounter returns a counter of resources of a version.
func NewCounter(v *version.Version) *Counter { return &Counter{generation: v.Generation, seq: v.Seq} }

// Of reports whether the count is that of a version.
func (c *Counter) Of(v *version.Version) bool { return c.generation == v.Generation && c.seq == v.Seq }

// CountSome continues a count for a bounded number of entries. It reports whether
// the count is complete.
func (c *Cache) CountSome(v *version.Version, f *segment.Format, prefix string, counter *Counter) bool {
	if prefix == "" {
		counter.N = v.Count
		return true
	}
	before := c.counts.Load()
	if n, known := before.find(counter.generation, counter.seq, prefix); known {
		counter.N = n
		return true
	}
	for looked := 0; counter.at.Segment < len(v.Segments) && looked < version.TurnEntries; {
		looked += countSegment(v, f, prefix, counter)
	}
	if counter.at.Segment < len(v.Segments) {
		return false
	}
	c.counts.CompareAndSwap(before, before.with(prefixCount{counter.generation, counter.seq, prefix, counter.N})) // another goroutine's result is as good
	return true
}

// countSegment counts in one segment, and returns its number of entries.
func countSegment(v *version.Version, f *segment.Format, prefix string, c *Counter) int {
	s, entries := v.Segments[c.at.Segment], v.Entries(c.at.Segment)
	for i := range entries {
		e := &entries[i]
		if !e.Is(segment.IsDelete) && e.Visible(v.Seq) && f.HasPrefix(s, e, prefix) {
			c.N++
		}
	}
	c.at.Segment++
	return len(entries)
}

// prefixCounts are the cached counts; nil: none. Immutable.
type prefixCounts []prefixCount

func (p *prefixCounts) find(generation, seq uint64, prefix string) (count int, known bool) {
	if p == nil {
		return 0, false
	}
	for _, c := range *p {
		if c.generation == generation && c.seq == seq && c.prefix == prefix {
			return c.count, true
		}
	}
	return 0, false
}

// with returns the counts with another one in front.
func (p *prefixCounts) with(c prefixCount) *prefixCounts {
	after := prefixCounts{c}
	if p != nil {
		after = append(after, (*p)[:min(len(*p), maxPrefixCounts-1)]...)
	}
	return &after
}
