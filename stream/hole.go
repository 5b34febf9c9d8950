package stream

// hole is a range of revisions of which this log knows nothing. Where deletes have
// no revision of their own, a snapshot is as new as the newest resource in it, and
// says nothing of newer ones that were deleted before it was taken. Another replica
// may have served them, and have given out their revisions. So positions between
// the snapshot and the first change after it are not resumed.
type hole struct {
	after  uint64 // the snapshot
	before uint64 // the first change; 0: none came yet
}

// maxHoles bounds how many outages are remembered one by one. Positions before the
// oldest one that is dropped are not resumed either.
const maxHoles = 16

// openHole follows a snapshot.
func (l *Log) openHole() {
	v := &l.next
	if !l.unnumbered || len(v.holes) > 0 && v.holes[len(v.holes)-1].before == 0 {
		return // nothing was changed since the last one, which is still open
	}
	holes := v.holes
	if len(holes) == maxHoles {
		if holes[0].before > v.horizon {
			v.horizon, v.horizonAge = holes[0].before, v.committed
		}
		holes = holes[1:]
	}
	v.holes = append(holes[:len(holes):len(holes)], hole{after: v.revision})
}

// closeHole follows the first upsert after a snapshot.
func (l *Log) closeHole(before uint64, last *entry) {
	v := &l.next
	n := len(v.holes)
	if n == 0 || v.holes[n-1].before != 0 || last == nil || v.revision <= before {
		return
	}
	first := v.newerThan(before)
	for first.segment < len(v.segments) {
		e := &v.entries(first.segment)[first.entry]
		if !e.is(isDelete) && e.revision > before {
			v.holes = append([]hole(nil), v.holes...)
			v.holes[n-1].before = e.revision
			return
		}
		first = v.normal(place{first.segment, first.entry + 1})
	}
}

// inHole says whether nothing is known of a revision.
func (v *version) inHole(revision uint64) bool {
	for _, h := range v.holes {
		if h.after < revision && revision < h.before {
			return true
		}
	}
	return false
}
