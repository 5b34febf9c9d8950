package log

import (
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/storage"
)

// append writes a transaction to the tail; its changes are already in that order. It
// returns the last entry, or nil if there is none.
func (w *Writer) append(at Order, changes []Change, revision uint64, result *CommitResult) *storage.Entry {
	w.prefetch(changes)
	now := time.Now()
	before, used, dead := w.next.Seq, w.used, w.dead
	var last *storage.Entry
	for i := range changes {
		if changes[i].Deleted {
			last = w.appendDelete(changes[i], at.IsUnnumbered(&changes[i]), revision, now)
			result.Deletes++
		} else {
			last = w.appendUpsert(&changes[i])
			result.Upserts++
		}
		if w.conflated || changes[i].IsConflated() {
			last.Flags |= storage.Conflated
			w.next.Conflate(last.Seq, revision, w.unnumbered)
		}
	}
	w.next.Revision, w.next.Committed, w.next.Age = revision, now, w.age
	if last == nil {
		return nil
	}
	last.Flags |= storage.EndsCommit
	w.forgetDeletes(now)
	w.recent.Add(before, w.dead-dead, now, w.history.MaxAge)
	w.next.Times = w.next.Times.Add(before+1, now, !w.fromSnapshot, storage.CommitSpacing(w.history.MaxAge))
	w.compactAfter(w.used - used)
	return last
}

func (w *Writer) appendUpsert(c *Change) *storage.Entry {
	e := w.appendChange(c)
	if c.Encoding != "" {
		e.Flags |= storage.ValueBase64
	}
	e.Content = digest.Of(c.Key, c.Value, c.Encoding)
	w.next.Digest = w.next.Digest.Add(e.Content)
	return e
}

// order is that of the next commit.
func (w *Writer) order() Order {
	return Order{Before: w.next.Revision, Unnumbered: w.unnumbered}
}

// appendDelete writes a tombstone. An unnumbered one takes the revision of the
// commit, and shows it if it has none of its own.
func (w *Writer) appendDelete(c Change, unnumbered bool, revision uint64, now time.Time) *storage.Entry {
	if c.Revision == 0 {
		c.Revision = revision
	}
	e := w.appendChange(&c)
	if unnumbered {
		e.Flags |= storage.UnnumberedDelete
		e.Revision = revision
	}
	w.remember(e, now)
	return e
}

// remember makes an entry a tombstone.
func (w *Writer) remember(e *storage.Entry, now time.Time) {
	e.Flags |= storage.IsDelete
	w.deletes.Push(storage.Tombstone{Seq: e.Seq, At: now})
	w.deleteBytes += int64(e.Size)
	w.next.Tombstones++
}

// appendChange writes the frame and its entry, and supersedes the older entry.
func (w *Writer) appendChange(c *Change) *storage.Entry {
	k := storage.NewKey(c.Key)
	e, frame := w.appendEntry(w.next.Seq+1, k, w.framing.Size(&c.Resource, c.Deleted, k.Key))
	w.framing.Append(frame, &c.Resource, c.Deleted, k.Key)
	e.Revision = c.Revision
	return e
}

// appendEntry writes an entry, except for its revision and its frame of so many bytes, and
// supersedes the older entry of the key.
func (w *Writer) appendEntry(seq uint64, k storage.Key, size int) (*storage.Entry, []byte) {
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
	if old == nil || old.Is(storage.IsDelete) {
		e.Flags |= storage.Unseen
	}
	if old != nil {
		e.Back = uint32(min(e.Seq-old.Seq, storage.FarBack))
		w.supersede(oldSegment, old, e.Seq)
	}
	w.index.Set(slot, k.Hash, e.Seq)
	return e, frame
}

// supersede hides an entry from every version from seq on.
func (w *Writer) supersede(s *storage.Segment, e *storage.Entry, seq uint64) {
	e.Superseded.Store(seq)
	s.Dead += int(e.Size)
	w.dead += int64(e.Size)
	if e.Is(storage.IsDelete) {
		w.next.Tombstones--
		w.deleteBytes -= int64(e.Size)
		return
	}
	w.next.Digest = w.next.Digest.Sub(e.Content)
}

// tailFor returns the last segment, or a new one if the frame does not fit.
func (w *Writer) tailFor(size int) *storage.Segment {
	if n := len(w.next.Segments); n > 0 && w.next.Segments[n-1].Fits(size) {
		return w.next.Segments[n-1]
	}
	bytes, entries := storage.SizeFor(size, w.used)
	s := storage.NewSegment(w.next.Number, bytes, entries)
	w.next.Segments = append(w.next.Segments, s)
	w.allocate(s)
	return s
}

// growIndex makes a table for the keys that have an entry, with room for as many
// more. Readers keep the old one.
func (w *Writer) growIndex() {
	grown := storage.NewIndex(2 * (w.next.Count() + w.next.Tombstones + 8))
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

// cost is an upper estimate of the bytes that the upserts of a transaction add to
// the log. Deletes are bounded by the history.
func (w *Writer) cost(changes []Change) int64 {
	return w.costAfter(storage.PackingAfter(w.next.Segments, w.used), changes)
}

// snapshotCost is how many bytes a log built from a snapshot takes.
func (w *Writer) snapshotCost(snapshot []Change) int64 {
	return w.costAfter(storage.Packing{}, snapshot)
}

func (w *Writer) costAfter(p storage.Packing, changes []Change) int64 {
	if w.account == nil {
		return 0
	}
	around := w.framing.Overhead()
	for i := range changes {
		if c := &changes[i]; !c.Deleted {
			p.Add(around + len(c.Key) + len(c.Value))
		}
	}
	return p.Bytes
}

// prefetchFrom is the size of a transaction, and prefetchIndex the size of an index, from
// which it pays to prefetch.
const (
	prefetchFrom  = 4
	prefetchIndex = 1 << 17
)

// prefetch touches what the changes of a transaction will need of a large log: the slot
// of each key, then its entry, then its frame. One upsert of a key among a million
// waits for memory three times in sequence. Requested together, the waits of a whole
// transaction overlap: one of 64 upserts takes 91 instead of 109 µs among a million
// keys. Among 100,000 there is no difference (BenchmarkTransaction).
func (w *Writer) prefetch(changes []Change) {
	if len(changes) >= prefetchFrom && w.index.Size() >= prefetchIndex {
		w.prefetched += w.next.Prefetch(w.index, len(changes), func(i int) string { return changes[i].Key })
	}
}
