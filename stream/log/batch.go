package log

import (
	"iter"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/frame"
	"github.com/watchtide/watchtide/stream/log/internal/segment"
)

// Batch is one flush of one subscription: events that belong together, in order.
// Events from the log are not copied: a batch only refers to runs of entries, and
// their frames are sent as they are.
//
// A Batch belongs to the goroutine that fills it with Subscription.Next, and may be
// reused. What it returns aliases the log and the batch: it is valid until the next
// fill and must not be modified.
type Batch struct {
	log       *Log
	parts     []part
	counts    [stream.Goodbye + 1]int
	bytes     int
	heldBytes int // bytes of the segments that parts refer to
	boundary  bool
	final     bool // nothing may follow in this batch
	committed time.Time
	scratch   []byte // frames of this subscriber's own events, and ids

	extents []extent // of the slices appended last
	runs    []byte   // of extents
}

// part is a run of adjacent entries of a segment, or one of the subscriber's own
// events.
type part struct {
	segment  *segment.Segment
	from, to int
	event    stream.Event
}

// maxHeldBytes is how many bytes of segments a batch holds before its flush ends at the
// next place where it may. The batch may need little of each segment.
const maxHeldBytes = 4 * segment.FullSize

// scratchKept is how large scratch may be to be reused: a longer text of the
// subscriber's own belongs to its holder, like one of the log.
const scratchKept = 4 << 10

func (b *Batch) reset(l *Log) {
	clear(b.parts) // release the segments
	if cap(b.scratch) > scratchKept {
		b.scratch = nil
	}
	*b = Batch{log: l, parts: b.parts[:0], scratch: b.scratch[:0], extents: b.extents[:0], runs: b.runs[:0]}
}

// Empty reports whether there is nothing to send.
func (b *Batch) Empty() bool { return len(b.parts) == 0 }

// full reports whether the flush should end at the next place where it may.
func (b *Batch) full() bool { return b.bytes >= flushBytes || b.heldBytes >= maxHeldBytes }

// Held is how many bytes of the log the batch keeps in memory until its Release.
// What was appended from it keeps them while it is used. They are whole segments, of
// which the batch may need little.
func (b *Batch) Held() int { return b.heldBytes }

// Release releases the log. Call it once what was appended from the batch is no
// longer needed, or was copied. The batch is empty then, except for its counters.
func (b *Batch) Release() {
	clear(b.parts)
	b.parts = b.parts[:0]
}

// Boundary reports whether the flush ends where a client may resume. Its last event
// then carries an id, made of the Position of every subscription of the stream.
func (b *Batch) Boundary() bool { return b.boundary }

// Count is how many events of a type the batch holds.
func (b *Batch) Count(t stream.EventType) int { return b.counts[t] }

// Bytes is roughly how many bytes the batch takes on the wire.
func (b *Batch) Bytes() int { return b.bytes }

// Committed is when the newest change in the batch became visible; zero if the batch
// is not live.
func (b *Batch) Committed() time.Time { return b.committed }

// addEvent appends one of the subscriber's own events.
func (b *Batch) addEvent(e stream.Event) {
	e.Watch = b.log.watch
	b.parts = append(b.parts, part{event: e})
	b.counts[e.Type]++
	b.bytes += 128
}

// addEntry appends the j-th entry of a segment, to the previous run if the two are
// adjacent.
func (b *Batch) addEntry(s *segment.Segment, j int) {
	e := &s.Entries[j]
	b.bytes += int(e.Size)
	if e.Is(segment.IsDelete) {
		b.counts[stream.Delete]++
	} else {
		b.counts[stream.Upsert]++
	}
	if n := len(b.parts); n > 0 && b.parts[n-1].segment == s && b.parts[n-1].to == j && s.Adjacent(j-1) {
		b.parts[n-1].to++
		return
	}
	b.addRun(s, j, j+1)
}

// addUpserts appends the entries from up to to of a segment, all of them upserts.
func (b *Batch) addUpserts(s *segment.Segment, from, to int) {
	first, last := &s.Entries[from], &s.Entries[to-1]
	b.bytes += int(last.Off + last.Size - first.Off)
	b.counts[stream.Upsert] += to - from
	for i := from; s.Lent && i < to-1; i++ {
		if !s.Adjacent(i) {
			b.addRun(s, from, i+1)
			from = i + 1
		}
	}
	b.addRun(s, from, to)
}

func (b *Batch) addRun(s *segment.Segment, from, to int) {
	if n := len(b.parts); n == 0 || b.parts[n-1].segment != s {
		b.heldBytes += int(s.Bytes())
	}
	b.parts = append(b.parts, part{segment: s, from: from, to: to})
}

// Events returns the events as values.
func (b *Batch) Events() iter.Seq[stream.Event] {
	return func(yield func(stream.Event) bool) {
		for i := range b.parts {
			p := &b.parts[i]
			if p.segment == nil {
				if !yield(p.event) {
					return
				}
				continue
			}
			for j := p.from; j < p.to; j++ {
				if !yield(b.log.framing.Event(p.segment, &p.segment.Entries[j])) {
					return
				}
			}
		}
	}
}

// AppendSSE appends the slices that together are the batch in a text/event-stream.
// The last event carries the id, if there is one.
func (b *Batch) AppendSSE(dst [][]byte, id []byte) [][]byte {
	b.beginExtents()
	for i := range b.parts {
		p := &b.parts[i]
		last := i == len(b.parts)-1 && len(id) > 0
		if p.segment == nil {
			b.addOwnExtent()
			dst = append(dst, b.ownFrame(p.event, id, last))
			continue
		}
		run := p.segment.Run(p.from, p.to)
		if !last {
			b.addExtent(p, 1, encodedSSE)
			dst = append(dst, run)
			continue
		}
		b.addExtent(p, 1, encodedSSEUpToID)
		b.addOwnExtent()
		// The id goes before the empty line that ends the frame.
		from := len(b.scratch)
		b.scratch = append(frame.AppendID(b.scratch, id), '\n')
		dst = append(dst, run[:len(run)-1], b.scratch[from:])
	}
	return dst
}

func (b *Batch) ownFrame(e stream.Event, id []byte, last bool) []byte {
	if !last {
		id = nil
	}
	from := len(b.scratch)
	b.scratch = frame.AppendOwn(b.scratch, e, id)
	return b.scratch[from:]
}

// AppendNDJSON appends the slices that together are the batch as newline-delimited
// JSON: the data objects, and a line with the id, if there is one.
func (b *Batch) AppendNDJSON(dst [][]byte, id []byte) [][]byte {
	b.beginExtents()
	for i := range b.parts {
		p := &b.parts[i]
		if p.segment == nil {
			b.addOwnExtent()
			from := len(b.scratch)
			b.scratch = append(frame.AppendEvent(b.scratch, p.event), '\n')
			dst = append(dst, b.scratch[from:])
			continue
		}
		b.addExtent(p, p.to-p.from, encodedNDJSON)
		for j := p.from; j < p.to; j++ {
			e := &p.segment.Entries[j]
			frame := p.segment.Frame(e)
			// The frame ends with two line ends; the line needs one.
			dst = append(dst, frame[b.log.framing.JSONAt(e):len(frame)-1])
		}
	}
	if len(id) > 0 {
		b.addOwnExtent()
		from := len(b.scratch)
		b.scratch = frame.AppendPositionLine(b.scratch, id)
		dst = append(dst, b.scratch[from:])
	}
	return dst
}
