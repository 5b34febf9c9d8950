package stream

// prefixCount is how many resources of one version have keys with a prefix. It is
// remembered because it takes a look at every entry, and very many readers may come
// back at the same time, all to the same version.
type prefixCount struct {
	generation, seq uint64 // of the version
	prefix          string
	count           int
}

// maxPrefixCounts is how many are remembered, the newest first.
const maxPrefixCounts = 16

// countPrefix is the number of resources whose key begins with prefix.
func (w View) countPrefix(prefix string) int {
	if prefix == "" {
		return w.v.count
	}
	before := w.log.counts.Load()
	if before != nil {
		for _, c := range *before {
			if c.generation == w.v.generation && c.seq == w.v.seq && c.prefix == prefix {
				return c.count
			}
		}
	}
	n := w.countEntries(prefix)
	after := []prefixCount{{generation: w.v.generation, seq: w.v.seq, prefix: prefix, count: n}}
	if before != nil {
		after = append(after, (*before)[:min(len(*before), maxPrefixCounts-1)]...)
	}
	w.log.counts.CompareAndSwap(before, &after) // what somebody else did is as good
	return n
}

func (w View) countEntries(prefix string) (n int) {
	w.v.each(w.v.seq, func(s *segment, e *entry) bool {
		if w.log.framing.hasPrefix(s, e, prefix) {
			n++
		}
		return true
	})
	return n
}
