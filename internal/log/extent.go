package log

import (
	"encoding/binary"
	"iter"

	"github.com/watchtide/watchtide/internal/frame"
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

// Extents divides the slices that Append appended last, in order.
func (b *Batch) Extents(slices [][]byte) iter.Seq[Extent] { return b.extents.of(slices) }

// extents is the extents of the slices that a batch appended last. The zero value has none.
//
// Owned by the batch.
type extents struct {
	all  []extent
	runs []byte
}

// extent is an Extent of a batch: its numbers of slices and of bytes of runs.
type extent struct {
	slices, runs int
	segment      uint64
}

// begin forgets all extents.
func (l *extents) begin() { l.all, l.runs = l.all[:0], l.runs[:0] }

// addOwn adds a text of the subscriber's own.
func (l *extents) addOwn() { l.all = append(l.all, extent{slices: 1}) }

// addRun adds a run of entries of a segment that was appended as so many slices. In frames, the
// line end after the id of the last one may be left out.
func (l *extents) addRun(p *piece, slices int, in frame.Format, beforeID bool) {
	if n := len(l.all); n == 0 || l.all[n-1].segment != p.segment.Name {
		l.all = append(l.all, extent{segment: p.segment.Name})
	}
	s := &l.all[len(l.all)-1]
	before := len(l.runs)
	l.runs = binary.AppendUvarint(l.runs, uint64(p.from))
	l.runs = binary.AppendUvarint(l.runs, uint64(p.to-p.from))
	how := byte(in) << 1
	if beforeID {
		how++
	}
	l.runs = append(l.runs, how)
	s.slices += slices
	s.runs += len(l.runs) - before
}

// of divides the appended slices, in order.
func (l *extents) of(slices [][]byte) iter.Seq[Extent] {
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
