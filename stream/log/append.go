package log

import (
	"time"

	"github.com/watchtide/watchtide/stream/log/internal/committed"
	"github.com/watchtide/watchtide/stream/log/internal/index"
	"github.com/watchtide/watchtide/stream/log/internal/segment"
	"github.com/watchtide/watchtide/stream/log/internal/tombstone"
	"github.com/watchtide/watchtide/stream/log/internal/transaction"
)

// append writes a transaction to the tail; its changes are already in order. It
// returns the last entry, or nil if there is none.
func (w *Writer) append(changes []Change, revision uint64, result *CommitResult) *segment.Entry {
	w.prefetch(changes)
	now := time.Now()
	at := w.order()
	before, used, dead := w.next.Seq, w.used, w.dead
	var last *segment.Entry
	for i := range changes {
		if changes[i].Deleted {
			last = w.appendDelete(changes[i], at.IsUnnumbered(&changes[i]), revision, now)
			result.Deletes++
		} else {
			last = w.appendUpsert(&changes[i])
			result.Upserts++
		}
		if w.conflated || changes[i].IsConflated() {
			last.Flags |= segment.Conflated
			w.next.Conflate(last.Seq, revision, w.unnumbered)
		}
	}
	w.next.Revision, w.next.Committed, w.next.Age = revision, now, w.age
	if last == nil {
		return nil
	}
	last.Flags |= segment.EndsCommit
	w.forgetDeletes(now)
	w.recent.Add(before, w.dead-dead, now, w.history.MaxAge)
	w.next.Times = w.next.Times.Add(before+1, now, !w.fromSnapshot, committed.Spacing(w.history.MaxAge))
	w.compactAfter(w.used - used)
	return last
}

func (w *Writer) appendUpsert(c *Change) *segment.Entry {
	e := w.appendChange(c)
	if c.Encoding != "" {
		e.Flags |= segment.ValueBase64
	}
	w.next.Count++
	return e
}

// order is that of the next commit.
func (w *Writer) order() transaction.Order {
	return transaction.Order{Before: w.next.Revision, Unnumbered: w.unnumbered}
}

// appendDelete writes a tombstone. An unnumbered one takes the revision of the
// commit, and shows it if it has none of its own.
func (w *Writer) appendDelete(c Change, unnumbered bool, revision uint64, now time.Time) *segment.Entry {
	if c.Revision == 0 {
		c.Revision = revision
	}
	e := w.appendChange(&c)
	if unnumbered {
		e.Flags |= segment.UnnumberedDelete
		e.Revision = revision
	}
	w.remember(e, now)
	return e
}

// remember makes an entry a tombstone.
func (w *Writer) remember(e *segment.Entry, now time.Time) {
	e.Flags |= segment.IsDelete
	w.deletes.Push(tombstone.Tombstone{Seq: e.Seq, At: now})
	w.deleteBytes += int64(e.Size)
	w.next.Tombstones++
}

// appendChange writes the frame and its entry, and supersedes the older entry.
func (w *Writer) appendChange(c *Change) *segment.Entry {
	k := segment.NewKey(c.Key)
	e, frame := w.appendEntry(w.next.Seq+1, k, w.framing.FrameSize(&c.Resource, c.Deleted, k))
	w.framing.AppendFrame(frame, &c.Resource, c.Deleted, k)
	e.Revision = c.Revision
	return e
}

// appendEntry writes an entry, except for its revision and its frame of so many bytes, and
// supersedes the older entry of the key.
func (w *Writer) appendEntry(seq uint64, k segment.Key, size int) (*segment.Entry, []byte) {
	slot, oldSegment, old := w.slot(k)
	s := w.tailFor(size)
	e, frame := s.Reserve(size)
	w.next.Seq = seq
	e.Seq, e.Flags = seq, k.Flags
	e.KeyLen, e.Hash = uint32(len(k.Text)), k.Hash
	w.next.Tail = s.N
	if s.N == 1 {
		w.next.First = append(w.next.First, e.Seq)
	}
	w.used += int64(size)
	if old == nil || old.Is(segment.IsDelete) {
		e.Flags |= segment.Unseen
	}
	if old != nil {
		e.Back = uint32(min(e.Seq-old.Seq, segment.FarBack))
		w.supersede(oldSegment, old, e.Seq)
	}
	w.index.Set(slot, k.Hash, e.Seq)
	return e, frame
}

// supersede hides an entry from every version from seq on.
func (w *Writer) supersede(s *segment.Segment, e *segment.Entry, seq uint64) {
	e.Superseded.Store(seq)
	s.Dead += int(e.Size)
	w.dead += int64(e.Size)
	if e.Is(segment.IsDelete) {
		w.next.Tombstones--
		w.deleteBytes -= int64(e.Size)
		return
	}
	w.next.Count--
}

// tailFor returns the last segment, or a new one if the frame does not fit.
func (w *Writer) tailFor(size int) *segment.Segment {
	if n := len(w.next.Segments); n > 0 && w.next.Segments[n-1].Fits(size) {
		return w.next.Segments[n-1]
	}
	bytes, entries := segment.SizeFor(size, w.used)
	s := segment.New(w.next.Number, bytes, entries)
	w.next.Segments = append(w.next.Segments, s)
	w.allocated += s.Bytes()
	w.added += s.Bytes()
	return s
}

// growIndex makes a table for the keys that have an entry, with room for as many
// more. Readers keep the old one.
func (w *Writer) growIndex() {
	grown := index.New(2 * (w.next.Count + w.next.Tombstones + 8))
	w.retire(w.indexed, w.index.Bytes())
	for i := range w.next.Segments {
		entries := w.next.Entries(i)
		for j := range entries {
			e := &entries[j]
			if e.Superseded.Load() == 0 {
				grown.Set(grown.Probe(e.Hash, func(uint64) bool { return false }), e.Hash, e.Seq)
			}
		}
	}
	w.index, w.indexed = grown, w.next.Number
}
