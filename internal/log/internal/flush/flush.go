package flush

import (
	"iter"
	"time"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Flush is the events that are sent to a subscriber at once, in order. Events from the log
// are not copied: a flush only refers to runs of entries, and their frames are sent as they
// are.
//
// Owned by the goroutine that fills it. What it returns aliases the log and the flush: it is
// valid until the next Reset and must not be modified.
type Flush struct {
	// Parts are the events, in order.
	Parts []Part
	// Bytes is about how many bytes the flush takes on the wire.
	Bytes int
	// HeldBytes is the size of all segments that the flush refers to.
	HeldBytes int
	// Boundary reports whether the flush ends at a place where a client may resume.
	Boundary bool
	// Final reports whether the flush is complete: nothing may be added.
	Final bool
	// Committed is when the newest change of the flush became visible, and Age how old it was then;
	// zero: the flush is not live.
	Committed time.Time
	Age       time.Duration

	format  *storage.Format
	watch   string
	counts  [stream.Goodbye + 1]int
	scratch []byte  // frames of the subscriber's own events, and ids
	extents Extents // of the slices that were appended last
}

// Part is a run of adjacent entries of a segment, or one of the subscriber's own events.
type Part struct {
	Segment  *storage.Segment // nil: an event of the subscriber's own
	From, To int
	Event    stream.Event
}

// held is how many full segments a flush may refer to, until it ends at the next place where it
// may. It may use little of each segment.
const held = 4

// scratchKept is the size up to which scratch is reused. A longer text belongs to the flush
// that has it, like one of the log.
const scratchKept = 4 << 10

// Reset empties the flush for events of a watch, whose frames have a format.
func (b *Flush) Reset(format *storage.Format, watch string) {
	clear(b.Parts) // release the segments
	if cap(b.scratch) > scratchKept {
		b.scratch = nil
	}
	*b = Flush{format: format, watch: watch, Parts: b.Parts[:0], scratch: b.scratch[:0], extents: b.extents}
	b.extents.Begin()
}

// Empty reports whether there is nothing to send.
func (b *Flush) Empty() bool { return len(b.Parts) == 0 }

// Full reports whether the flush should end at the next place where it may.
func (b *Flush) Full() bool {
	return b.Bytes >= storage.FlushSize || b.HeldBytes >= held*storage.SegmentSize
}

// Release releases the segments of the log, and leaves only the counters. Call it once the
// appended slices are no longer needed, or were copied.
func (b *Flush) Release() {
	clear(b.Parts)
	b.Parts = b.Parts[:0]
}

// Count returns how many events of a type the flush has.
func (b *Flush) Count(t stream.EventType) int { return b.counts[t] }

// AddEvent appends one of the subscriber's own events.
func (b *Flush) AddEvent(e stream.Event) {
	e.Watch = b.watch
	b.Parts = append(b.Parts, Part{Event: e})
	b.counts[e.Type]++
	b.Bytes += 128
}

// AddEntry appends the j-th entry of a segment, to the previous run if the two are
// adjacent.
func (b *Flush) AddEntry(s *storage.Segment, j int) {
	e := &s.Entries[j]
	b.Bytes += int(e.Size)
	if e.Is(storage.IsDelete) {
		b.counts[stream.Delete]++
	} else {
		b.counts[stream.Upsert]++
	}
	if n := len(b.Parts); n > 0 && b.Parts[n-1].Segment == s && b.Parts[n-1].To == j && s.Adjacent(j-1) {
		b.Parts[n-1].To++
		return
	}
	b.addRun(s, j, j+1)
}

// AddUpserts appends the entries from up to, but not including, to of a segment, all of
// them upserts.
func (b *Flush) AddUpserts(s *storage.Segment, from, to int) {
	first, last := &s.Entries[from], &s.Entries[to-1]
	b.Bytes += int(last.Off + last.Size - first.Off)
	b.counts[stream.Upsert] += to - from
	for i := from; s.Lent && i < to-1; i++ {
		if !s.Adjacent(i) {
			b.addRun(s, from, i+1)
			from = i + 1
		}
	}
	b.addRun(s, from, to)
}

func (b *Flush) addRun(s *storage.Segment, from, to int) {
	if n := len(b.Parts); n == 0 || b.Parts[n-1].Segment != s {
		b.HeldBytes += int(s.Bytes())
	}
	b.Parts = append(b.Parts, Part{Segment: s, From: from, To: to})
}

// AddDeletes appends the entries from up to, but not including, to of a segment: all of
// them deletes, and adjacent.
func (b *Flush) AddDeletes(s *storage.Segment, from, to int) {
	b.Bytes += len(s.Run(from, to))
	b.counts[stream.Delete] += to - from
	b.addRun(s, from, to)
}

// Extents divides the slices that AppendSSE or AppendNDJSON appended last, in
// order.
func (b *Flush) Extents(slices [][]byte) iter.Seq[Extent] { return b.extents.All(slices) }

// Events returns the events as values.
func (b *Flush) Events() iter.Seq[stream.Event] {
	return func(yield func(stream.Event) bool) {
		for i := range b.Parts {
			p := &b.Parts[i]
			if p.Segment == nil {
				if !yield(p.Event) {
					return
				}
				continue
			}
			for j := p.From; j < p.To; j++ {
				if !yield(b.format.Event(p.Segment, &p.Segment.Entries[j])) {
					return
				}
			}
		}
	}
}

// AppendSSE appends the slices that together are the flush in a text/event-stream.
// The last event carries the id, if there is one.
func (b *Flush) AppendSSE(dst [][]byte, id []byte) [][]byte {
	b.extents.Begin()
	for i := range b.Parts {
		p := &b.Parts[i]
		last := i == len(b.Parts)-1 && len(id) > 0
		if p.Segment == nil {
			b.extents.AddOwn()
			dst = append(dst, b.ownFrame(p.Event, id, last))
			continue
		}
		run := p.Segment.Run(p.From, p.To)
		if !last {
			b.extents.AddRun(p.Segment.Name, p.From, p.To, 1, SSE)
			dst = append(dst, run)
			continue
		}
		b.extents.AddRun(p.Segment.Name, p.From, p.To, 1, SSEUpToID)
		b.extents.AddOwn()
		// The id goes before the empty line that ends the frame.
		from := len(b.scratch)
		b.scratch = append(frame.AppendID(b.scratch, id), '\n')
		dst = append(dst, run[:len(run)-1], b.scratch[from:])
	}
	return dst
}

func (b *Flush) ownFrame(e stream.Event, id []byte, last bool) []byte {
	if !last {
		id = nil
	}
	from := len(b.scratch)
	b.scratch = frame.AppendOwn(b.scratch, e, id)
	return b.scratch[from:]
}

// AppendNDJSON appends the slices that together are the flush as newline-delimited
// JSON: the data objects, and a line with the id, if there is one.
func (b *Flush) AppendNDJSON(dst [][]byte, id []byte) [][]byte {
	b.extents.Begin()
	for i := range b.Parts {
		p := &b.Parts[i]
		if p.Segment == nil {
			b.extents.AddOwn()
			from := len(b.scratch)
			b.scratch = append(frame.AppendEvent(b.scratch, p.Event), '\n')
			dst = append(dst, b.scratch[from:])
			continue
		}
		b.extents.AddRun(p.Segment.Name, p.From, p.To, p.To-p.From, NDJSON)
		for j := p.From; j < p.To; j++ {
			e := &p.Segment.Entries[j]
			frame := p.Segment.Frame(e)
			// The frame ends with two line ends; the line needs one.
			dst = append(dst, frame[b.format.JSONAt(e):len(frame)-1])
		}
	}
	if len(id) > 0 {
		b.extents.AddOwn()
		from := len(b.scratch)
		b.scratch = frame.AppendPositionLine(b.scratch, id)
		dst = append(dst, b.scratch[from:])
	}
	return dst
}
