package log

import (
	"github.com/watchtide/watchtide/stream/log/internal/segment"
)

// cost is an upper estimate of the bytes that the upserts of a transaction add to
// the log. Deletes are bounded by the history.
func (w *Writer) cost(changes []Change) int64 {
	if w.account == nil {
		return 0
	}
	p := segment.Packing{Used: w.used}
	if n := len(w.next.Segments); n > 0 {
		last := w.next.Segments[n-1]
		p.Room, p.Entries = len(last.Slab)-last.Used, len(last.Entries)-last.N
	}
	return pack(p, w.framing, changes)
}

// snapshotCost is how many bytes a log built from a snapshot takes.
func (w *Writer) snapshotCost(snapshot []Change) int64 {
	if w.account == nil {
		return 0
	}
	return pack(segment.Packing{}, w.framing, snapshot)
}

func pack(p segment.Packing, f *segment.Format, changes []Change) int64 {
	around := f.Overhead()
	for i := range changes {
		if c := &changes[i]; !c.Deleted {
			p.Add(around + len(c.Key) + len(c.Value))
		}
	}
	return p.Bytes
}
