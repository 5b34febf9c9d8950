package storage

import (
	"slices"
)

// EachExcept calls f for every live resource, by rising revision, except those with the seqs
// that are present, which it sorts.
func (v *Version) EachExcept(present []uint64, f func(s *Segment, e *Entry)) {
	slices.Sort(present)
	v.Each(v.Seq, func(s *Segment, e *Entry) bool {
		if len(present) > 0 && present[0] == e.Seq {
			present = present[1:]
			return true
		}
		f(s, e)
		return true
	})
}

// Packed returns a segment of so many bytes with the newest entry of each key.
func (v *Version) Packed(bytes int) *Segment {
	packed := NewSegment(v.Number, bytes, v.Count()+v.Tombstones)
	for i, s := range v.Segments {
		entries := v.Entries(i)
		for j := range entries {
			if entries[j].Superseded.Load() == 0 {
				packed.AppendCopy(s, &entries[j])
			}
		}
	}
	return packed
}
