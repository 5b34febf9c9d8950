package log

import (
	"time"

	"github.com/watchtide/watchtide/internal/storage"
)

// forgetDeletes drops deletes that exceed the limits of the history, as part of the commit
// under way: readers at or after it no longer see them, readers before it still do. A
// reader that has not seen them can no longer resume: the horizon rises.
func (w *Writer) forgetDeletes(now time.Time) {
	oldest := now.Add(-w.history.MaxAge)
	for {
		t, ok := w.deletes.Oldest()
		if !ok {
			break
		}
		s, e := w.next.Find(t.Seq)
		if e == nil || e.Superseded.Load() != 0 {
			w.deletes.Pop()
			continue
		}
		within := w.next.Tombstones <= w.history.MaxDeletes &&
			w.deleteBytes <= w.history.MaxBytes && !t.At.Before(oldest)
		if within || t.Seq == w.next.Seq {
			break
		}
		w.deletes.Pop()
		w.dropDelete(s, e, t.At)
	}
	w.deletes.Compact(w.next.Tombstones, func(seq uint64) bool {
		_, e := w.next.Find(seq)
		return e != nil && e.Superseded.Load() == 0
	})
}

func (w *Writer) dropDelete(s *storage.Segment, e *storage.Entry, at time.Time) {
	slot := w.index.Probe(e.Hash, func(seq uint64) bool { return seq == e.Seq })
	w.index.Drop(slot, e.Hash, w.next.Seq)
	w.supersede(s, e, w.next.Seq)
	w.next.Forgotten = max(w.next.Forgotten, e.Seq)
	w.next.RaiseTo(e, at)
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
		allowed := min((w.used-w.dead)/20+max(0, tail-dead)*3/4, w.history.MaxBytes-w.deleteBytes)
		if kept <= max(0, allowed) {
			return mark
		}
		w.recent.Forget()
	}
}
