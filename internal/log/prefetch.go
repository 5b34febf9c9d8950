package log

// prefetchFrom is the size of a transaction, and prefetchIndex the size of an index, from
// which it pays to prefetch.
const (
	prefetchFrom  = 4
	prefetchIndex = 1 << 17
)

// prefetch touches what the changes of a transaction will need of a large log: the slot
// of each key, then its entry, then its frame. One upsert of a key among a million
// waits for memory three times in sequence. Requested together, the waits of a whole
// transaction overlap: one of 64 upserts takes 91 instead of 109 µs among a million
// keys. Among 100,000 there is no difference (BenchmarkTransaction).
func (w *Writer) prefetch(changes []Change) {
	if len(changes) >= prefetchFrom && w.index.Size() >= prefetchIndex {
		w.prefetched += w.next.Prefetch(w.index, len(changes), func(i int) string { return changes[i].Key })
	}
}
