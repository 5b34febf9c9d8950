package log

import "runtime"

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

// countPrefix is the number of resources whose key begins with prefix.
func (w Snapshot) countPrefix(prefix string) int {
	c := counting{generation: w.v.generation, seq: w.v.seq}
	for !w.countSome(prefix, &c) {
		runtime.Gosched()
	}
	return c.count
}

// counting is a count under way.
type counting struct {
	generation, seq uint64 // of the version
	at              place  // next entry to examine
	count           int
}

// countSome continues a count for a bounded number of entries. It reports whether
// the count is complete.
func (w Snapshot) countSome(prefix string, c *counting) bool {
	if prefix == "" {
		c.count = w.v.count
		return true
	}
	before := w.log.counts.Load()
	if n, known := before.find(c.generation, c.seq, prefix); known {
		c.count = n
		return true
	}
	for looked := 0; c.at.segment < len(w.v.segments) && looked < turnEntries; {
		looked += w.countSegment(prefix, c)
	}
	if c.at.segment < len(w.v.segments) {
		return false
	}
	w.log.counts.CompareAndSwap(before, before.with(prefixCount{c.generation, c.seq, prefix, c.count})) // another goroutine's result is as good
	return true
}

// countSegment counts in one segment, and returns its number of entries.
func (w Snapshot) countSegment(prefix string, c *counting) int {
	s, entries := w.v.segments[c.at.segment], w.v.entries(c.at.segment)
	for i := range entries {
		e := &entries[i]
		if !e.is(isDelete) && e.visible(w.v.seq) && w.log.framing.hasPrefix(s, e, prefix) {
			c.count++
		}
	}
	c.at.segment++
	return len(entries)
}

// countDone reports whether it is known how many resources the reader has at the end
// of the walk. Only a reader that resumes has to count them.
func (s *Subscription) countDone() bool {
	w := &s.walk
	if w.purpose != resuming || s.options.Prefix == "" {
		return true
	}
	if c := w.counting; c == nil || c.generation != w.v.generation || c.seq != w.v.seq {
		w.counting = &counting{generation: w.v.generation, seq: w.v.seq}
	}
	w.examined = turnEntries // whatever comes next is in another turn
	return Snapshot{s.log, w.v}.countSome(s.options.Prefix, w.counting)
}

// count is how many resources the reader has at the end of the walk.
func (w *walk) count() int {
	if w.counting == nil {
		return w.v.count
	}
	return w.counting.count
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
