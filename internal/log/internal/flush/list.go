package flush

import (
	"encoding/binary"
	"iter"
)

// Extent is a part of an appended batch: bytes of one segment of the log, or a text of the
// subscriber's own.
type Extent struct {
	// Slices are the appended slices of the extent.
	Slices [][]byte
	// Segment is the name of the segment; 0: a text of the subscriber's own. Names are never
	// used again.
	Segment uint64
	// Parts says which entries of the segment are written, and how. Extents with the same
	// Segment and Parts always have the same bytes, for every subscriber. Parts is valid until
	// the batch is appended again.
	Parts []byte
}

// Encoding is how entries are written: the last byte of Extent.Parts.
type Encoding byte

// The encodings.
const (
	SSE       Encoding = iota
	SSEUpToID          // the last frame lacks the line end after its id
	NDJSON
)

// Extents is the extents of the slices that a batch appended last. The zero value has none.
//
// Owned by the batch.
type Extents struct {
	all  []extent
	runs []byte
}

// extent is an Extent of a batch: its numbers of slices and of bytes of runs.
type extent struct {
	slices, runs int
	segment      uint64
}

// Begin forgets all extents.
func (l *Extents) Begin() { l.all, l.runs = l.all[:0], l.runs[:0] }

// AddOwn adds a text of the subscriber's own.
func (l *Extents) AddOwn() { l.all = append(l.all, extent{slices: 1}) }

// AddRun adds a run of entries of a segment that was appended as so many slices.
func (l *Extents) AddRun(segment uint64, from, to, slices int, as Encoding) {
	if n := len(l.all); n == 0 || l.all[n-1].segment != segment {
		l.all = append(l.all, extent{segment: segment})
	}
	s := &l.all[len(l.all)-1]
	before := len(l.runs)
	l.runs = binary.AppendUvarint(l.runs, uint64(from))
	l.runs = binary.AppendUvarint(l.runs, uint64(to-from))
	l.runs = append(l.runs, byte(as))
	s.slices += slices
	s.runs += len(l.runs) - before
}

// All divides the appended slices, in order.
func (l *Extents) All(slices [][]byte) iter.Seq[Extent] {
	return func(yield func(Extent) bool) {
		runs := l.runs
		for _, s := range l.all {
			if !yield(Extent{Slices: slices[:s.slices], Segment: s.segment, Parts: runs[:s.runs]}) {
				return
			}
			slices, runs = slices[s.slices:], runs[s.runs:]
		}
	}
}
