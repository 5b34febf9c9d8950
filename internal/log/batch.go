package log

import (
	"iter"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/flush"
	"github.com/watchtide/watchtide/stream"
)

// Extent is a part of an appended batch; see Batch.Extents.
type Extent = flush.Extent

// Batch is one flush of one subscription: events that belong together, in order.
// Events from the log are not copied: a batch only refers to runs of entries, and
// their frames are sent as they are.
//
// A Batch belongs to the goroutine that fills it with Subscription.Next, and may be
// reused. What it returns aliases the log and the batch: it is valid until the next
// fill and must not be modified.
type Batch struct {
	of   flush.Flush
	walk walk // the walk of the subscription that fills it, unless it began in an earlier flush
}

func (b *Batch) reset(l *Log) { b.of.Reset(l.framing, l.watch) }

// Empty reports whether there is nothing to send.
func (b *Batch) Empty() bool { return b.of.Empty() }

// Held is how many bytes of the log the batch keeps in memory until its Release.
// What was appended from it keeps them while it is used. They are whole segments, of
// which the batch may need little.
func (b *Batch) Held() int { return b.of.HeldBytes }

// Release releases the log. Call it once what was appended from the batch is no
// longer needed, or was copied. The batch is empty then, except for its counters.
func (b *Batch) Release() { b.of.Release() }

// Boundary reports whether the flush ends where a client may resume. Its last event
// then carries an id, made of the Position of every subscription of the stream.
func (b *Batch) Boundary() bool { return b.of.Boundary }

// changes is how many changes of resources the batch holds.
func (b *Batch) changes() int { return b.Count(stream.Upsert) + b.Count(stream.Delete) }

// Count is how many events of a type the batch holds.
func (b *Batch) Count(t stream.EventType) int { return b.of.Count(t) }

// Bytes is roughly how many bytes the batch takes on the wire.
func (b *Batch) Bytes() int { return b.of.Bytes }

// Committed is when the newest change in the batch became visible, and its age then, by the
// upstream's clock; zero if the batch is not live, or the age is not known.
func (b *Batch) Committed() (at time.Time, age time.Duration) { return b.of.Committed, b.of.Age }

// Extents divides the slices that AppendSSE or AppendNDJSON appended last, in order.
func (b *Batch) Extents(slices [][]byte) iter.Seq[Extent] { return b.of.Extents(slices) }

// Events returns the events as values.
func (b *Batch) Events() iter.Seq[stream.Event] { return b.of.Events() }

// AppendSSE appends the slices that together are the batch in a text/event-stream.
// The last event carries the id, if there is one.
func (b *Batch) AppendSSE(dst [][]byte, id []byte) [][]byte { return b.of.AppendSSE(dst, id) }

// AppendNDJSON appends the slices that together are the batch as newline-delimited
// JSON: the data objects, and a line with the id, if there is one.
func (b *Batch) AppendNDJSON(dst [][]byte, id []byte) [][]byte { return b.of.AppendNDJSON(dst, id) }
