package storage

import (
	"time"
)

// Conflate records that values may be missing before an entry of a commit. If the order of
// deletes is not known, a reader at the revision of the commit may not have the commit yet.
func (v *Version) Conflate(seq, revision uint64, unnumbered bool) {
	if unnumbered {
		revision++
	}
	v.Conflated, v.ConflatedSeq = revision, seq
}

// RaiseTo raises the horizon so that no reader resumes that may lack an entry. It returns
// the least revision from which one may.
func (v *Version) RaiseTo(e *Entry, at time.Time) uint64 {
	horizon := after(e)
	v.Run.Horizon = max(v.Run.Horizon, horizon)
	if horizon > v.Horizon {
		v.Horizon, v.HorizonAge = horizon, at
	}
	return horizon
}

// Lack records that the log of a part lacks a delete that a reader before an entry may need.
func (v *Version) Lack(e *Entry) {
	horizon := v.RaiseTo(e, v.Committed)
	v.Conflated, v.ConflatedSeq = max(v.Conflated, horizon), max(v.ConflatedSeq, e.Seq)
}

// RaiseOrigin records that changes before a revision may be unknown.
func (v *Version) RaiseOrigin(origin uint64) {
	v.Origin = max(v.Origin, origin)
	if origin > v.Horizon {
		v.Horizon, v.HorizonAge = origin, v.Committed
	}
}

// CloseOutage is called after a commit, whose newest entry is last, and before which the
// version was at a revision. The first upsert after an outage tells where that ended.
func (v *Version) CloseOutage(before uint64, last *Entry) {
	if !v.OriginPending || last == nil || v.Revision <= before {
		return
	}
	first := v.NewerThan(before)
	for first.Segment < len(v.Segments) {
		e := &v.Entries(first.Segment)[first.Entry]
		if !e.Is(IsDelete) && e.Revision > before {
			v.OriginPending = false
			v.RaiseOrigin(e.Revision)
			return
		}
		first = v.Next(first)
	}
}

// Exact is the least revision since which nothing is missing: of no change after it is
// unknown what the resource was before, and no values were left out.
func (v *Version) Exact() uint64 {
	for i := len(v.Segments) - 1; i >= 0; i-- {
		entries := v.Entries(i)
		for j := len(entries) - 1; j >= 0; j-- {
			e := &entries[j]
			if e.Revision < v.Horizon {
				return v.Horizon
			}
			if v.doubtful(e) {
				return max(v.Horizon, after(e))
			}
		}
	}
	return v.Horizon
}

// doubtful reports whether a reader may have had the resource of an entry, before it, in a
// way that is not known here.
func (v *Version) doubtful(e *Entry) bool {
	_, before, known := v.Before(e)
	unseen := e.Is(IsDelete) && (before == nil || before.Is(IsDelete))
	return !known || unseen || e.Is(Conflated)
}

// after is the least revision of a reader that certainly does not lack an entry.
func after(e *Entry) uint64 {
	if e.Is(UnnumberedDelete) {
		return e.Revision + 1 // a reader at this very revision may or may not have seen it
	}
	return e.Revision
}

// Complete is the revision from which on the log has every change. The log of a part lacks
// the deletes of values that may be missing.
func (v *Version) Complete() uint64 {
	if v.OfGeneration == 0 {
		return v.Origin
	}
	return max(v.Origin, v.Conflated)
}
