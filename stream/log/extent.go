package log

import (
	"encoding/binary"
	"iter"
)

// Extent is a part of an appended batch: what is in one segment of the log, or one
// text of the subscriber's own.
type Extent struct {
	// Slices are its part of the appended slices.
	Slices [][]byte
	// Segment is its name; 0: the text is the subscriber's own. No other segment
	// has, or had, the same name.
	Segment uint64
	// Parts says which entries of the segment, and how they are written. Extents
	// with the same Segment and Parts have the same bytes, for every subscriber and at
	// any time. It is valid until the batch is appended again.
	Parts []byte
}

// extent is an Extent of a batch: its number of slices, and of bytes of runs.
type extent struct {
	slices, runs int
	segment      uint64
}

// encoding is how entries are written: the last byte of Extent.Parts.
type encoding byte

const (
	encodedSSE       encoding = iota
	encodedSSEUpToID          // the last frame lacks the line end after its id
	encodedNDJSON
)

// Extents divides the slices that AppendSSE or AppendNDJSON appended last, in
// order.
func (b *Batch) Extents(slices [][]byte) iter.Seq[Extent] {
	return func(yield func(Extent) bool) {
		runs := b.runs
		for _, s := range b.extents {
			if !yield(Extent{Slices: slices[:s.slices], Segment: s.segment, Parts: runs[:s.runs]}) {
				return
			}
			slices, runs = slices[s.slices:], runs[s.runs:]
		}
	}
}

func (b *Batch) beginExtents() { b.extents, b.runs = b.extents[:0], b.runs[:0] }

func (b *Batch) addOwnExtent() { b.extents = append(b.extents, extent{slices: 1}) }

// addExtent adds a run of entries that was appended as so many slices.
func (b *Batch) addExtent(p *part, slices int, as encoding) {
	if n := len(b.extents); n == 0 || b.extents[n-1].segment != p.segment.Name {
		b.extents = append(b.extents, extent{segment: p.segment.Name})
	}
	s := &b.extents[len(b.extents)-1]
	from := len(b.runs)
	b.runs = binary.AppendUvarint(b.runs, uint64(p.from))
	b.runs = binary.AppendUvarint(b.runs, uint64(p.to-p.from))
	b.runs = append(b.runs, byte(as))
	s.slices += slices
	s.runs += len(b.runs) - from
}
