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
	p := packing{used: w.used}
	if n := len(w.next.Segments); n > 0 {
		last := w.next.Segments[n-1]
		p.room, p.entries = len(last.Slab)-last.Used, len(last.Entries)-last.N
	}
	return p.pack(&w.framing, changes)
}

// snapshotCost is how many bytes a log built from a snapshot takes.
func (w *Writer) snapshotCost(snapshot []Change) int64 {
	if w.account == nil {
		return 0
	}
	var p packing
	return p.pack(&w.framing, snapshot)
}

// packing simulates how the log will fill segments.
type packing struct {
	used    int64 // bytes of frames so far
	room    int   // in the last slab
	entries int   // free in the last segment
	bytes   int64 // added
}

// inIndex is the most bytes that a key takes in the index.
const inIndex = 24

func (p *packing) pack(f *segment.Format, changes []Change) int64 {
	around := f.Overhead()
	for i := range changes {
		if c := &changes[i]; !c.Deleted {
			p.add(around + len(c.Key) + len(c.Value))
		}
	}
	return p.bytes
}

func (p *packing) add(frame int) {
	if p.room < frame || p.entries == 0 {
		p.room, p.entries = segment.SizeFor(frame, p.used)
		p.bytes += int64(p.room) + int64(p.entries)*segment.EntrySize
	}
	p.room -= frame
	p.entries--
	p.used += int64(frame)
	p.bytes += inIndex
}
