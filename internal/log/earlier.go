package log

import (
	"unsafe"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Earlier is what an upstream still knows of the time before a snapshot: which resources were
// deleted, and when. A log needs nothing else to resume readers from that time, since every
// live resource is in the snapshot. Values that were superseded by then are not known.
type Earlier struct {
	// Deletes have a key and a revision of their own, in any order. A key may be deleted more
	// than once, and be live in the snapshot.
	Deletes []stream.Resource
	// After is the revision after which no delete is missing. If it is not below that of the
	// snapshot, the deletes prove nothing.
	After uint64
}

// PrepareEarlier sets what is known of the time before the next snapshot; nil: nothing. When the
// deletes were made is not known. They are remembered as if it had been at the snapshot, so the
// limits of the history apply from then on.
func (w *Writer) PrepareEarlier(e *Earlier) { w.earlier = e }

// before returns the last delete of each key that is not in a snapshot, and the revision after
// which none is missing. Deletes that contradict the snapshot are not believed, nor any other.
func (e *Earlier) before(snapshot []Change, revision uint64) (deletes []Change, after uint64) {
	if e == nil {
		return nil, revision
	}
	last := make(map[string]uint64, len(e.Deletes))
	for _, r := range e.Deletes {
		if r.Revision > 0 && r.Revision <= revision {
			last[r.Key] = max(last[r.Key], r.Revision)
		}
	}
	for i := range snapshot {
		c := &snapshot[i]
		at, gone := last[c.Key]
		if gone && at >= c.Revision {
			return nil, revision
		}
		delete(last, c.Key)
	}
	for _, r := range e.Deletes {
		if at, gone := last[r.Key]; gone && at == r.Revision {
			deletes = append(deletes, Change{Resource: stream.Resource{Key: r.Key, Revision: at}, Deleted: true})
			delete(last, r.Key)
		}
	}
	return deletes, min(e.After, revision)
}

// merge returns a snapshot, which is arranged, and deletes that it does not contradict, by rising
// revision.
func merge(snapshot, deletes []Change) []Change {
	if len(deletes) == 0 {
		return snapshot
	}
	deletes = Order{}.Arrange(deletes)
	all := make([]Change, 0, len(snapshot)+len(deletes))
	for i := range snapshot {
		for len(deletes) > 0 && deletes[0].Revision < snapshot[i].Revision {
			all, deletes = append(all, deletes[0]), deletes[1:]
		}
		all = append(all, snapshot[i])
	}
	return append(all, deletes...)
}

// deletesCost is an upper estimate of the bytes that tombstones add to the log.
func (w *Writer) deletesCost(deletes []Change) int64 {
	if w.account == nil || len(deletes) == 0 {
		return 0
	}
	p, around := storage.Packing{}, w.framing.Overhead()
	for i := range deletes {
		p.Add(around + len(deletes[i].Key))
	}
	return p.Bytes + 2*int64(len(deletes))*int64(unsafe.Sizeof(storage.Tombstone{}))
}

// deleted returns the deletes between the log and a snapshot, which has the entries whose seqs
// are present, and the revision after which none is missing. A resource whose delete is not
// known was deleted up to then. No position from before then is resumed, so until then only what the
// log has can be deleted.
func (w *Writer) deleted(snapshot []Change, present []uint64, revision uint64) (deletes []Change, after uint64) {
	known, after := w.earlier.before(snapshot, revision)
	if w.unnumbered {
		known, after = nil, revision
	}
	before, at := w.next.Revision, make(map[string]uint64, len(known))
	for i := range known {
		if c := &known[i]; c.Revision > before && (c.Revision > after || w.live(c.Key)) {
			at[c.Key] = c.Revision
			deletes = append(deletes, *c)
		}
	}
	var missing []Change
	w.next.EachExcept(present, func(s *storage.Segment, e *storage.Entry) {
		if key := w.framing.Key(s, e); at[key] == 0 {
			missing = append(missing, Change{Resource: stream.Resource{Key: key, Revision: after}, Deleted: true})
		}
	})
	if len(missing) > 0 && after <= before && after < revision {
		// The upstream has told of every delete since, and of these resources none.
		w.earlier = nil
		return w.deleted(snapshot, present, revision)
	}
	return append(deletes, missing...), after
}

// live reports whether the log has a resource.
func (w *Writer) live(key string) bool {
	_, _, e := w.lookup(storage.NewKey(key))
	return e != nil && !e.Is(storage.IsDelete)
}
