package log

import (
	"iter"
	"time"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Batch is one flush of one subscription: events that belong together, in order.
// Events from the log are not copied: a batch only refers to runs of entries, and
// their frames are sent as they are.
//
// A Batch belongs to the goroutine that fills it with Subscription.Next, and may be
// reused. What it returns aliases the log and the batch: it is valid until the next
// fill and must not be modified.
type Batch struct {
	walk walk // the walk of the subscription that fills it, unless it began in an earlier flush

	pieces    []piece // the events, in order
	bytes     int
	heldBytes int
	boundary  bool
	final     bool // nothing may be added
	committed time.Time
	age       time.Duration

	format  *storage.Format
	watch   string
	counts  [stream.Goodbye + 1]int
	scratch []byte  // events of the subscriber's own, and ids
	extents extents // of the slices that were appended last
}

// piece is a run of adjacent entries of a segment, or one of the subscriber's own events.
type piece struct {
	segment  *storage.Segment // nil: an event of the subscriber's own
	from, to int
	event    stream.Event
}

// fullSegments is how many full segments a flush may refer to, until it ends at the next place where
// it may. It may use little of each segment.
const fullSegments = 4

// scratchKept is the size up to which scratch is reused. A longer text belongs to the flush
// that has it, like one of the log.
const scratchKept = 4 << 10

func (b *Batch) reset(l *Log) {
	clear(b.pieces) // release the segments
	if cap(b.scratch) > scratchKept {
		b.scratch = nil
	}
	b.pieces, b.scratch = b.pieces[:0], b.scratch[:0]
	b.extents.begin()
	b.format, b.watch, b.counts = l.framing, l.watch, [stream.Goodbye + 1]int{}
	b.bytes, b.heldBytes, b.boundary, b.final, b.committed, b.age = 0, 0, false, false, time.Time{}, 0
}

// Empty reports whether there is nothing to send.
func (b *Batch) Empty() bool { return len(b.pieces) == 0 }

// full reports whether the flush should end at the next place where it may.
func (b *Batch) full() bool {
	return b.bytes >= storage.FlushSize || b.heldBytes >= fullSegments*storage.SegmentSize
}

// Held is how many bytes of the log the batch keeps in memory until its Release.
// What was appended from it keeps them while it is used. They are whole segments, of
// which the batch may need little.
func (b *Batch) Held() int { return b.heldBytes }

// Release releases the log. Call it once what was appended from the batch is no
// longer needed, or was copied. The batch is empty then, except for its counters.
func (b *Batch) Release() {
	clear(b.pieces)
	b.pieces = b.pieces[:0]
}

// Boundary reports whether the flush ends where a client may resume. Its last event
// then carries an id, made of the Position of every subscription of the stream.
func (b *Batch) Boundary() bool { return b.boundary }

// changes is how many changes of resources the batch holds.
func (b *Batch) changes() int { return b.Count(stream.Upsert) + b.Count(stream.Delete) }

// Count is how many events of a type the batch holds.
func (b *Batch) Count(t stream.EventType) int { return b.counts[t] }

// Bytes is roughly how many bytes the batch takes on the wire.
func (b *Batch) Bytes() int { return b.bytes }

// Committed is when the newest change in the batch became visible, and its age then, by the
// upstream's clock; zero if the batch is not live, or the age is not known.
func (b *Batch) Committed() (at time.Time, age time.Duration) { return b.committed, b.age }

// addEvent appends one of the subscriber's own events.
func (b *Batch) addEvent(e stream.Event) {
	e.Watch = b.watch
	b.pieces = append(b.pieces, piece{event: e})
	b.counts[e.Type]++
	b.bytes += 128
}

// addEntry appends the j-th entry of a segment, to the previous run if the two are
// adjacent.
func (b *Batch) addEntry(s *storage.Segment, j int) {
	e := &s.Entries[j]
	b.bytes += int(e.Size)
	if e.Is(storage.IsDelete) {
		b.counts[stream.Delete]++
	} else {
		b.counts[stream.Upsert]++
	}
	if n := len(b.pieces); n > 0 && b.pieces[n-1].segment == s && b.pieces[n-1].to == j && s.Adjacent(j-1) {
		b.pieces[n-1].to++
		return
	}
	b.addRun(s, j, j+1)
}

// addDelete appends the j-th entry of a segment, a delete, to a catch-up. What has left a window may have left the view
// since, of which the log of the window does not know: such a delete does not say that the view still has the resource.
func (b *Batch) addDelete(s *storage.Segment, j int) {
	e := &s.Entries[j]
	if !b.format.IsLeft(s, e) {
		b.addEntry(s, j)
		return
	}
	gone := b.format.Event(s, e)
	gone.Left = false
	b.addEvent(gone)
	b.bytes += len(gone.Resource.Key)
}

// addUpserts appends the entries from up to, but not including, to of a segment, all of
// them upserts.
func (b *Batch) addUpserts(s *storage.Segment, from, to int) {
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

func (b *Batch) addRun(s *storage.Segment, from, to int) {
	if n := len(b.pieces); n == 0 || b.pieces[n-1].segment != s {
		b.heldBytes += int(s.Bytes())
	}
	b.pieces = append(b.pieces, piece{segment: s, from: from, to: to})
}

// Events returns the events as values.
func (b *Batch) Events() iter.Seq[stream.Event] {
	return func(yield func(stream.Event) bool) {
		for i := range b.pieces {
			p := &b.pieces[i]
			if p.segment == nil {
				if !yield(p.event) {
					return
				}
				continue
			}
			for j := p.from; j < p.to; j++ {
				if !yield(b.format.Event(p.segment, &p.segment.Entries[j])) {
					return
				}
			}
		}
	}
}

// Append appends the slices that together are the batch in a format. The last event
// carries the id, if there is one.
func (b *Batch) Append(dst [][]byte, in frame.Format, id []byte) [][]byte {
	b.extents.begin()
	for i := range b.pieces {
		p := &b.pieces[i]
		with := id
		if i < len(b.pieces)-1 {
			with = nil
		}
		if p.segment == nil {
			dst = b.appendOwn(dst, in.AppendEvent(b.scratch, p.event, with))
			continue
		}
		dst = b.appendRun(dst, in, p, len(with) > 0)
		if len(with) > 0 {
			dst = b.appendOwn(dst, in.AppendID(b.scratch, with))
		}
	}
	return dst
}

// appendRun appends entries of a segment, up to the id of the last one if it has one.
func (b *Batch) appendRun(dst [][]byte, in frame.Format, p *piece, id bool) [][]byte {
	if in != frame.SSE {
		b.extents.addRun(p, p.to-p.from, in, false)
		for j := p.from; j < p.to; j++ {
			e := &p.segment.Entries[j]
			dst = append(dst, b.format.In(in, p.segment.Frame(e), e.Is(storage.IsDelete)))
		}
		return dst
	}
	b.extents.addRun(p, 1, in, id)
	run := p.segment.Run(p.from, p.to)
	if id {
		run = frame.BeforeID(run)
	}
	return append(dst, run)
}

// appendOwn appends what was written to scratch.
func (b *Batch) appendOwn(dst [][]byte, scratch []byte) [][]byte {
	from := len(b.scratch)
	b.scratch = scratch
	b.extents.addOwn()
	return append(dst, scratch[from:])
}
