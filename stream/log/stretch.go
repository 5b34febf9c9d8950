package log

import (
	"encoding/binary"
	"iter"
)

// Stretch is a part of an appended batch: what is in one segment of the log, or one
// text of the subscriber's own.
type Stretch struct {
	// Slices are its part of the appended slices.
	Slices [][]byte
	// Place is the segment; 0: the text is the subscriber's own. No other segment
	// has, or had, the same Place.
	Place uint64
	// Parts says which entries of the segment, and how they are written. Stretches
	// with the same Place and Parts have the same bytes, for every subscriber and at
	// any time. It is valid until the batch is appended again.
	Parts []byte
}

// stretch is a Stretch of a batch: its number of slices, and of bytes of runs.
type stretch struct {
	slices, runs int
	place        uint64
}

// writing is how entries are written: the last byte of Stretch.Parts.
type writing byte

const (
	inSSE       writing = iota
	inSSEUpToID         // the last frame lacks the line end after its id
	inNDJSON
)

// Stretches divides the slices that AppendSSE or AppendNDJSON appended last, in
// order.
func (b *Batch) Stretches(slices [][]byte) iter.Seq[Stretch] {
	return func(yield func(Stretch) bool) {
		runs := b.runs
		for _, s := range b.stretches {
			if !yield(Stretch{Slices: slices[:s.slices], Place: s.place, Parts: runs[:s.runs]}) {
				return
			}
			slices, runs = slices[s.slices:], runs[s.runs:]
		}
	}
}

func (b *Batch) beginStretches() { b.stretches, b.runs = b.stretches[:0], b.runs[:0] }

func (b *Batch) ownStretch() { b.stretches = append(b.stretches, stretch{slices: 1}) }

// stretch adds a run of entries that was appended as so many slices.
func (b *Batch) stretch(p *part, slices int, w writing) {
	if n := len(b.stretches); n == 0 || b.stretches[n-1].place != p.segment.name {
		b.stretches = append(b.stretches, stretch{place: p.segment.name})
	}
	s := &b.stretches[len(b.stretches)-1]
	from := len(b.runs)
	b.runs = binary.AppendUvarint(b.runs, uint64(p.from))
	b.runs = binary.AppendUvarint(b.runs, uint64(p.to-p.from))
	b.runs = append(b.runs, byte(w))
	s.slices += slices
	s.runs += len(b.runs) - from
}
