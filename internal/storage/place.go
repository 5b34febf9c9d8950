package storage

import (
	"sort"
)

// Place is an entry's place in a version: a segment and an index in it.
type Place struct{ Segment, Entry int }

// segmentOf returns the last segment that begins at or before seq; -1 if none does.
// It is the writer's hottest search, so it avoids unpredictable branches.
func (v *Version) segmentOf(seq uint64) int {
	first := v.First
	if len(first) == 0 || first[0] > seq {
		return -1
	}
	at := 0
	for n := len(first); n > 1; {
		half := n / 2
		if first[at+half] <= seq {
			at += half
		}
		n -= half
	}
	return at
}

// After returns the place of the first entry with a greater seq.
func (v *Version) After(seq uint64) Place {
	i := v.segmentOf(seq)
	if i < 0 {
		return Place{}
	}
	entries := v.Entries(i)
	j := sort.Search(len(entries), func(j int) bool { return entries[j].Seq > seq })
	return v.Normalize(Place{i, j})
}

// Normalize moves a place at the end of a segment to the start of the next.
func (v *Version) Normalize(p Place) Place {
	for p.Segment < len(v.Segments) && p.Entry >= len(v.Entries(p.Segment)) {
		p = Place{Segment: p.Segment + 1}
	}
	return p
}

// Next returns the place after p.
func (v *Version) Next(p Place) Place { return v.Normalize(Place{p.Segment, p.Entry + 1}) }

// Entry returns the entry at a place.
func (v *Version) Entry(p Place) *Entry { return &v.Segments[p.Segment].Entries[p.Entry] }

// Find returns the entry with exactly this seq.
func (v *Version) Find(seq uint64) (*Segment, *Entry) {
	i := v.segmentOf(seq)
	if i < 0 {
		return nil, nil
	}
	entries := v.Entries(i)
	j := v.guess(i, len(entries), seq)
	// The guess is exact in a segment as written, and close in a compacted one: a
	// step or two cost less than a search, which would wait for memory each time.
	for range 8 {
		switch at := entries[j].Seq; {
		case at == seq:
			return v.Segments[i], &entries[j]
		case at < seq && j+1 < len(entries):
			j++
		case at > seq && j > 0:
			j--
		default:
			return nil, nil
		}
	}
	j = sort.Search(len(entries), func(j int) bool { return entries[j].Seq >= seq })
	if j == len(entries) || entries[j].Seq != seq {
		return nil, nil
	}
	return v.Segments[i], &entries[j]
}

// Before returns the previous entry of the key of e; nil if it had none. It is not known
// if it is no longer in the version.
func (v *Version) Before(e *Entry) (s *Segment, previous *Entry, known bool) {
	switch e.Back {
	case 0:
		return nil, nil, true
	case FarBack:
		return nil, nil, false
	}
	s, previous = v.Find(e.Seq - uint64(e.Back))
	return s, previous, previous != nil
}

// guess estimates where in segment i, of n entries, a seq is.
func (v *Version) guess(i, n int, seq uint64) int {
	end := v.Seq + 1
	if i+1 < len(v.First) {
		end = v.First[i+1]
	}
	offset, span := seq-v.First[i], end-v.First[i]
	if offset >= span {
		return n - 1
	}
	return int(offset * uint64(n) / span)
}

// NewerThan returns the place of the first entry that a reader at revision has not
// seen, or may not have seen: the first with a greater revision, or an unnumbered delete
// with an equal one. Unnumbered deletes are the last of their revision.
func (v *Version) NewerThan(revision uint64) Place {
	return v.Search(func(e *Entry) bool {
		return e.Revision > revision || e.Revision == revision && e.Is(UnnumberedDelete)
	})
}

// FromRevision returns the place of the first entry with this revision or a greater one.
func (v *Version) FromRevision(revision uint64) Place {
	return v.Search(func(e *Entry) bool { return e.Revision >= revision })
}

// Search returns the place of the first entry for which found is true, as it is for
// all entries after it.
func (v *Version) Search(found func(e *Entry) bool) Place {
	i := sort.Search(len(v.Segments), func(i int) bool {
		entries := v.Entries(i)
		return found(&entries[len(entries)-1])
	})
	if i == len(v.Segments) {
		return Place{Segment: i}
	}
	entries := v.Entries(i)
	return Place{i, sort.Search(len(entries), func(j int) bool { return found(&entries[j]) })}
}

// SeqBefore returns the cursor of a reader that continues at p.
func (v *Version) SeqBefore(p Place) uint64 {
	if p.Segment >= len(v.Segments) {
		return v.Seq
	}
	return v.Entries(p.Segment)[p.Entry].Seq - 1
}

// BytesFrom is how many bytes of frames are at p and beyond, at most limit.
func (v *Version) BytesFrom(p Place, limit int) int {
	n := 0
	for i := p.Segment; i < len(v.Segments) && n < limit; i++ {
		n += v.UsedBytes(i)
		if i == p.Segment {
			n -= int(v.Segments[i].Entries[p.Entry].Off)
		}
	}
	return min(n, limit)
}

// EntriesFrom is how many entries are at p and beyond.
func (v *Version) EntriesFrom(p Place) (n int) {
	for i := p.Segment; i < len(v.Segments); i++ {
		n += len(v.Entries(i))
	}
	return n - p.Entry
}

// FindNear returns the entry at the place where Find begins to look.
func (v *Version) FindNear(seq uint64) (*Segment, *Entry) {
	i := v.segmentOf(seq)
	if i < 0 {
		return nil, nil
	}
	entries := v.Entries(i)
	return v.Segments[i], &entries[v.guess(i, len(entries), seq)]
}
