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
// transaction overlap.
func (w *Writer) prefetch(changes []Change) {
	if len(changes) < prefetchFrom || len(w.index.slots) < prefetchIndex {
		return
	}
	const atOnce = 16
	for ; len(changes) > atOnce; changes = changes[atOnce:] {
		w.prefetchSome(changes[:atOnce])
	}
	w.prefetchSome(changes)
}

func (w *Writer) prefetchSome(changes []Change) {
	var slots [16]uint64
	var segments [16]*segment
	var entries [16]*entry
	mask := uint32(len(w.index.slots) - 1)
	for i := range changes {
		slots[i] = w.index.slots[newWireKey(changes[i].Key).hash&mask].Load()
	}
	for i := range changes {
		segments[i], entries[i] = w.next.near(slots[i] & seqMask)
	}
	for i := range changes {
		if e := entries[i]; e != nil {
			w.prefetched += segments[i].slab[e.off+e.size/2]
		}
	}
}

// near is find without the search: it returns the entry at the guessed place.
func (v *version) near(seq uint64) (*segment, *entry) {
	i := v.segmentOf(seq)
	if i < 0 {
		return nil, nil
	}
	entries := v.entries(i)
	return v.segments[i], &entries[v.guess(i, len(entries), seq)]
}
