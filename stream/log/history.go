package log

import (
	"time"
	"unsafe"
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

// forgetDeletes drops the deletes that are beyond the history, as part of the commit under
// way: readers at or after it no longer see them, readers before it still do. A
// reader that has not seen them can no longer resume: the horizon rises.
func (w *Writer) forgetDeletes(now time.Time) {
	oldest := now.Add(-w.history.MaxAge)
	for {
		t, ok := w.deletes.oldest()
		if !ok {
			break
		}
		s, e := w.next.find(t.seq)
		if e == nil || e.superseded.Load() != 0 {
			w.deletes.pop()
			continue
		}
		within := w.next.tombstones <= w.history.MaxDeletes &&
			w.deletes.bytes <= w.history.MaxBytes && !t.at.Before(oldest)
		if within || t.seq == w.next.seq {
			break
		}
		w.deletes.pop()
		w.dropDelete(s, e, t.at)
	}
	w.deletes.compact(w.next.tombstones, func(seq uint64) bool {
		_, e := w.next.find(seq)
		return e != nil && e.superseded.Load() == 0
	})
}

func (w *Writer) dropDelete(s *segment, e *entry, at time.Time) {
	slot := w.index.probe(e.hash, func(seq uint64) bool { return seq == e.seq })
	w.index.drop(slot, e.hash, w.next.seq)
	w.supersede(s, e, w.next.seq)
	w.next.forgotten = max(w.next.forgotten, e.seq)
	horizon := e.revision
	if e.is(unnumberedDelete) {
		// A reader at this very revision may or may not have seen it.
		horizon++
	}
	w.next.run.horizon = max(w.next.run.horizon, horizon)
	if horizon > w.next.horizon {
		w.next.horizon, w.next.horizonAge = horizon, at
	}
}
