package storage

// Get finds the entry of a key as of the version; it may be a tombstone.
//
// The index belongs to the writer, which may be ahead of the version. So its result
// is checked, and if it refers to a later entry the log itself is read.
func (v *Version) Get(f *Format, k Key) (s *Segment, e *Entry) {
	if s, e, known := v.GetQuickly(f, k); known {
		return s, e
	}
	return v.scan(f, k)
}

// GetQuickly is Get in a time that does not depend on the number of entries. It is not known whether there is one
// if the log has gone on since and that may have made it hard to find.
func (v *Version) GetQuickly(f *Format, k Key) (s *Segment, e *Entry, known bool) {
	ahead := false
	v.Index.Probe(k.Hash, func(seq uint64) bool {
		if seq > v.Seq {
			ahead = true
			return false
		}
		s, e = v.Find(seq)
		if e != nil && f.KeyEquals(s, e, k) && e.Visible(v.Seq) {
			return true
		}
		ahead = ahead || e == nil || f.KeyEquals(s, e, k)
		s, e = nil, nil
		return false
	})
	return s, e, e != nil || !ahead && !v.Index.DroppedAfter(k.Hash, v.Seq)
}

// scan finds the entry of a key by looking at all of them, newest first.
func (v *Version) scan(f *Format, k Key) (*Segment, *Entry) {
	for i := len(v.Segments) - 1; i >= 0; i-- {
		entries := v.Entries(i)
		for j := len(entries) - 1; j >= 0; j-- {
			e := &entries[j]
			if e.Hash == k.Hash && f.KeyEquals(v.Segments[i], e, k) && e.Visible(v.Seq) {
				return v.Segments[i], e
			}
		}
	}
	return nil, nil
}

// prefetched is how many keys are looked up at the same time.
const prefetched = 16

// Prefetch reads the memory that looking up n keys needs. The sum of the bytes that it returns
// has no meaning.
func (v *Version) Prefetch(x *Index, n int, key func(i int) string) (sum byte) {
	var hashes [prefetched]uint32
	for i := 0; i < n; i += len(hashes) {
		some := hashes[:min(len(hashes), n-i)]
		for j := range some {
			some[j] = NewKey(key(i + j)).Hash
		}
		sum += v.prefetch(x, some)
	}
	return sum
}

func (v *Version) prefetch(x *Index, hashes []uint32) (sum byte) {
	var seqs [prefetched]uint64
	var segments [prefetched]*Segment
	var entries [prefetched]*Entry
	for i, hash := range hashes {
		seqs[i] = x.Guess(hash)
	}
	for i := range hashes {
		segments[i], entries[i] = v.FindNear(seqs[i])
	}
	for i := range hashes {
		if e := entries[i]; e != nil {
			sum += segments[i].Slab[e.Off+e.Size/2]
		}
	}
	return sum
}
