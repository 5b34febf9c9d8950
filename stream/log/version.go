package log

import (
	"sort"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// version is one committed state of a log: immutable, published through one atomic
// pointer. A reader that holds a version sees exactly what was there when it was
// committed, for as long as it holds it, whatever the writer does.
type version struct {
	number     uint64 // rises with each version
	generation uint64 // rises with each new revision order, and with Discard
	epoch      string // "" until primed

	segments []*segment
	first    []uint64 // seq of the first entry of each segment
	tail     int      // entries of the last segment that belong to the version

	index *index

	seq      uint64 // of the newest entry: the cursor of a reader at the head
	revision uint64 // the position of a reader at the head
	swept    uint64 // as in the position of a reader at the head
	run      run    // the zero value where deletes have revisions

	intact   uint64 // every entry with a greater seq is still there, superseded or not
	readable uint64 // a state as of a smaller seq can no longer be built

	origin     uint64 // from this revision on every change was received
	horizon    uint64 // from this revision on every change is known: no position below it is resumed
	horizonAge time.Time
	open       bool   // origin is not known yet: it will be the next upsert's, see closeOutage
	forgotten  uint64 // seq of the newest delete that was dropped: no cursor below it can continue

	count      int   // resources
	tombstones int   // deletes remembered
	bytes      int64 // memory held
	status     stream.Status
	committed  time.Time

	changed chan struct{} // closed when there is a newer version; never written to
}

func (v *version) primed() bool { return v.epoch != "" }

// entries returns the entries of segment i that belong to the version.
func (v *version) entries(i int) []entry {
	s := v.segments[i]
	if i == len(v.segments)-1 {
		return s.entries[:v.tail]
	}
	return s.entries[:s.n]
}

// place is an entry's place in a version: a segment and an index in it.
type place struct{ segment, entry int }

// segmentOf returns the last segment that begins at or before seq; -1 if none does.
// It is the writer's hottest search, so it avoids unpredictable branches.
func (v *version) segmentOf(seq uint64) int {
	first := v.first
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

// after returns the place of the first entry with a greater seq.
func (v *version) after(seq uint64) place {
	i := v.segmentOf(seq)
	if i < 0 {
		return place{}
	}
	entries := v.entries(i)
	j := sort.Search(len(entries), func(j int) bool { return entries[j].seq > seq })
	return v.normalize(place{i, j})
}

// normalize moves a place at the end of a segment to the start of the next.
func (v *version) normalize(p place) place {
	for p.segment < len(v.segments) && p.entry >= len(v.entries(p.segment)) {
		p = place{segment: p.segment + 1}
	}
	return p
}

// next returns the place after p.
func (v *version) next(p place) place { return v.normalize(place{p.segment, p.entry + 1}) }

func (v *version) entry(p place) *entry { return &v.segments[p.segment].entries[p.entry] }

// find returns the entry with exactly this seq.
func (v *version) find(seq uint64) (*segment, *entry) {
	i := v.segmentOf(seq)
	if i < 0 {
		return nil, nil
	}
	entries := v.entries(i)
	j := v.guess(i, len(entries), seq)
	// The guess is exact in a segment as written, and close in a compacted one: a
	// step or two cost less than a search, which would wait for memory each time.
	for range 8 {
		switch at := entries[j].seq; {
		case at == seq:
			return v.segments[i], &entries[j]
		case at < seq && j+1 < len(entries):
			j++
		case at > seq && j > 0:
			j--
		default:
			return nil, nil
		}
	}
	j = sort.Search(len(entries), func(j int) bool { return entries[j].seq >= seq })
	if j == len(entries) || entries[j].seq != seq {
		return nil, nil
	}
	return v.segments[i], &entries[j]
}

// guess estimates where in segment i, of n entries, a seq is.
func (v *version) guess(i, n int, seq uint64) int {
	end := v.seq + 1
	if i+1 < len(v.first) {
		end = v.first[i+1]
	}
	offset, span := seq-v.first[i], end-v.first[i]
	if offset >= span {
		return n - 1
	}
	return int(offset * uint64(n) / span)
}

// newerThan returns the place of the first entry that a reader at revision has not
// seen, or may not have seen: the first with a greater revision, or an unnumbered delete
// with an equal one. Unnumbered deletes are the last of their revision.
func (v *version) newerThan(revision uint64) place {
	return v.search(func(e *entry) bool {
		return e.revision > revision || e.revision == revision && e.is(unnumberedDelete)
	})
}

// fromRevision returns the place of the first entry with this revision or a greater one.
func (v *version) fromRevision(revision uint64) place {
	return v.search(func(e *entry) bool { return e.revision >= revision })
}

// search returns the place of the first entry for which found is true, as it is for
// all entries after it.
func (v *version) search(found func(e *entry) bool) place {
	i := sort.Search(len(v.segments), func(i int) bool {
		entries := v.entries(i)
		return found(&entries[len(entries)-1])
	})
	if i == len(v.segments) {
		return place{segment: i}
	}
	entries := v.entries(i)
	return place{i, sort.Search(len(entries), func(j int) bool { return found(&entries[j]) })}
}

// seqBefore returns the cursor of a reader that continues at p.
func (v *version) seqBefore(p place) uint64 {
	if p.segment >= len(v.segments) {
		return v.seq
	}
	return v.entries(p.segment)[p.entry].seq - 1
}

// used is how many bytes of frames are in the i-th segment.
func (v *version) used(i int) int {
	entries := v.entries(i)
	last := &entries[len(entries)-1]
	return int(last.off + last.size)
}

// bytesFrom is how many bytes of frames are at p and beyond, at most limit.
func (v *version) bytesFrom(p place, limit int) int {
	n := 0
	for i := p.segment; i < len(v.segments) && n < limit; i++ {
		n += v.used(i)
		if i == p.segment {
			n -= int(v.segments[i].entries[p.entry].off)
		}
	}
	return min(n, limit)
}

// each calls f for every live resource as of seq, by rising revision, until f
// returns false.
func (v *version) each(seq uint64, f func(s *segment, e *entry) bool) {
	for i, s := range v.segments {
		entries := v.entries(i)
		for j := range entries {
			e := &entries[j]
			if e.seq > seq {
				return
			}
			if !e.is(isDelete) && e.visible(seq) && !f(s, e) {
				return
			}
		}
	}
}
