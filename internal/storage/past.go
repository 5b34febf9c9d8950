package storage

import (
	"time"
)

// EachNewest calls f for each entry up to a revision, superseded or not, newest first, until f
// returns false.
func (v *Version) EachNewest(upTo uint64, f func(s *Segment, e *Entry) bool) {
	end := v.Search(func(e *Entry) bool { return e.Revision > upTo })
	for i := min(end.Segment, len(v.Segments)-1); i >= 0; i-- {
		entries := v.Entries(i)
		if i == end.Segment {
			entries = entries[:end.Entry]
		}
		for j := len(entries) - 1; j >= 0; j-- {
			if !f(v.Segments[i], &entries[j]) {
				return
			}
		}
	}
}

// Kept is the least revision after which the log still has all that it had, superseded or not.
func (v *Version) Kept() uint64 { return v.revisionOf(v.Intact) }

// Understood is the least revision after which no values were left out, and it is known what
// each change changed, unless it deletes what was never there.
func (v *Version) Understood() uint64 {
	return max(v.Horizon, v.Conflated, v.Since, v.revisionOf(v.Readable))
}

// revisionOf returns the revision of an entry or, if it is gone, of the next one.
func (v *Version) revisionOf(seq uint64) uint64 {
	if seq == 0 {
		return 0 // it began empty, and nothing was dropped
	}
	if _, e := v.Find(seq); e != nil {
		return e.Revision
	}
	first := v.After(seq)
	if first.Segment == len(v.Segments) {
		return v.Revision
	}
	return v.Entry(first).Revision
}

// ReachedAt returns when the watch was at a revision, or up to a second before: of what came
// with a snapshot, when that was, if it is the horizon.
func (v *Version) ReachedAt(revision uint64) (at time.Time, known bool) {
	if revision == v.Horizon {
		return v.HorizonAge, !v.HorizonAge.IsZero()
	}
	first := v.FromRevision(revision)
	if first.Segment == len(v.Segments) {
		return v.Committed, revision == v.Revision
	}
	return v.Times.Of(v.Entry(first).Seq)
}
