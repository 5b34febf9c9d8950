package log

import (
	"time"
	"unsafe"

	"github.com/watchtide/watchtide/stream/log/internal/segment"
)

// tombstone is a delete that is remembered for readers that resume.
type tombstone struct {
	seq uint64
	at  time.Time
}

// tombstones are the deletes of a log, oldest first. Superseded ones (the key was
// created again) stay in the queue until they outnumber the others. Owned by the
// log's writer.
type tombstones struct {
	queue []tombstone
	first int   // index in queue; those before it were removed
	bytes int64 // frames of those not superseded
}

func (t *tombstones) push(d tombstone) { t.queue = append(t.queue, d) }

// oldest returns the next tombstone to examine; false if there is none.
func (t *tombstones) oldest() (tombstone, bool) {
	if t.first == len(t.queue) {
		return tombstone{}, false
	}
	return t.queue[t.first], true
}

func (t *tombstones) pop() { t.first++ }

func (t *tombstones) memory() int64 {
	return int64(cap(t.queue)) * int64(unsafe.Sizeof(tombstone{}))
}

// compactFrom is the length up to which a queue is not worth compacting.
const compactFrom = 64

// compact reduces the queue to the tombstones for which keep is true, of which there
// are live, if that halves it. So a queue takes no more than its tombstones need,
// and each push pays for moving at most one other.
func (t *tombstones) compact(live int, keep func(seq uint64) bool) {
	if len(t.queue) <= 2*live+compactFrom {
		return
	}
	kept := make([]tombstone, 0, live+live/4+compactFrom/2)
	for _, d := range t.queue[t.first:] {
		if keep(d.seq) {
			kept = append(kept, d)
		}
	}
	t.queue, t.first = kept, 0
}

// forgetDeletes drops deletes that exceed the limits of the history, as part of the commit
// under way: readers at or after it no longer see them, readers before it still do. A
// reader that has not seen them can no longer resume: the horizon rises.
func (w *Writer) forgetDeletes(now time.Time) {
	oldest := now.Add(-w.history.MaxAge)
	for {
		t, ok := w.deletes.oldest()
		if !ok {
			break
		}
		s, e := w.next.Find(t.seq)
		if e == nil || e.Superseded.Load() != 0 {
			w.deletes.pop()
			continue
		}
		within := w.next.Tombstones <= w.history.MaxDeletes &&
			w.deletes.bytes <= w.history.MaxBytes && !t.at.Before(oldest)
		if within || t.seq == w.next.Seq {
			break
		}
		w.deletes.pop()
		w.dropDelete(s, e, t.at)
	}
	w.deletes.compact(w.next.Tombstones, func(seq uint64) bool {
		_, e := w.next.Find(seq)
		return e != nil && e.Superseded.Load() == 0
	})
}

func (w *Writer) dropDelete(s *segment.Segment, e *segment.Entry, at time.Time) {
	slot := w.index.Probe(e.Hash, func(seq uint64) bool { return seq == e.Seq })
	w.index.Drop(slot, e.Hash, w.next.Seq)
	w.supersede(s, e, w.next.Seq)
	w.next.Forgotten = max(w.next.Forgotten, e.Seq)
	horizon := e.Revision
	if e.Is(segment.UnnumberedDelete) {
		// A reader at this very revision may or may not have seen it.
		horizon++
	}
	w.next.Run.Horizon = max(w.next.Run.Horizon, horizon)
	if horizon > w.next.Horizon {
		w.next.Horizon, w.next.HorizonAge = horizon, at
	}
}

// mark is the seq after which compaction keeps what was superseded: whoever builds a part of
// the log later needs it to know what a reader that resumes has. In the tail nothing is
// dropped, so what is kept there is not counted. Outside it, a twentieth of the live bytes is
// kept, and three quarters of what the tail has less than it may have. So if all segments
// outside hold a little less than a quarter that can be dropped, what is superseded is
// exactly what may be: two fifths of the live bytes and the tail.
//
// Outside is how many segments precede the tail.
func (w *Writer) mark(outside int) uint64 {
	tail := w.tailBytes()
	w.recent.ForgetBefore(w.next.Committed.Add(-w.history.MaxAge))
	for {
		mark, dead, kept := w.recent.Mark(w.next.Seq), int64(0), w.recent.Bytes()
		for i := outside; i < len(w.next.Segments); i++ {
			n := int64(w.next.Segments[i].Dead)
			dead += n
			if w.next.First[i] > mark {
				kept -= n
			}
		}
		allowed := min((w.used-w.dead)/20+max(0, tail-dead)*3/4, w.history.MaxBytes-w.deletes.bytes)
		if kept <= max(0, allowed) {
			return mark
		}
		w.recent.Forget()
	}
}
