package log

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
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

// Change is one resource of a transaction, or of a snapshot.
type Change struct {
	stream.Resource
	// Deleted means that the resource was deleted; only its Key and Revision count.
	Deleted bool

	// unnumbered means that it deletes a resource that the same transaction upserted, and
	// has only the revision of that upsert.
	unnumbered bool
	// conflated means that the same transaction has an earlier change of the key.
	conflated bool
}

// IsConflated reports whether it is all that is left of several changes of its key.
func (c *Change) IsConflated() bool { return c.conflated }

// Check rejects changes that must not enter a log. A change that is newer than its
// commit is rejected as well: others of its revision may be missing.
func Check(changes []Change, revision uint64) error {
	for i := range changes {
		c := &changes[i]
		if err := checkChange(c); err != nil {
			return err
		}
		if c.Revision > revision {
			return fmt.Errorf("%w: key %.80q changed at %d, in a commit of everything up to %d", stream.ErrInvalid, c.Key, c.Revision, revision)
		}
	}
	return nil
}

// Order is the order of changes in a commit after the one at Before.
type Order struct {
	Before     uint64
	Unnumbered bool // deletes have no revision of their own
}

// IsUnnumbered reports whether a change is a delete without a revision of its own. Its
// place is the revision of its commit, after everything else in it: other replicas
// may have put it into another commit, and only a late place is repeated to every
// reader that may lack it.
func (p Order) IsUnnumbered(c *Change) bool {
	return c.Deleted && (p.Unnumbered || c.unnumbered || c.Revision <= p.Before)
}

// rank is the place of a change within its transaction.
func (p Order) rank(c *Change) uint64 {
	if p.IsUnnumbered(c) {
		return math.MaxUint64
	}
	return c.Revision
}

// Arrange returns the changes by rising revision, followed by the deletes without
// one; the order within one place is kept. It sorts places and not the changes,
// which are large: a snapshot may have many, in any order.
func (p Order) Arrange(changes []Change) []Change {
	if p.ordered(changes) {
		return changes
	}
	type ranked struct {
		rank uint64
		at   int
	}
	order := make([]ranked, len(changes))
	for i := range changes {
		order[i] = ranked{p.rank(&changes[i]), i}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at))
	})
	sorted := make([]Change, len(changes))
	for i, o := range order {
		sorted[i] = changes[o.at]
	}
	return sorted
}

func (p Order) ordered(changes []Change) bool {
	for i := range changes {
		if i > 0 && p.rank(&changes[i]) < p.rank(&changes[i-1]) {
			return false
		}
	}
	return true
}

func checkChange(c *Change) error {
	if c.Deleted {
		return nil
	}
	if c.Revision == 0 {
		return fmt.Errorf("%w: key %.80q has revision 0", stream.ErrInvalid, c.Key)
	}
	if len(c.Value) == 0 || !stream.OneLine(c.Value) {
		return fmt.Errorf("%w: the value of key %.80q is not JSON on one line", stream.ErrInvalid, c.Key)
	}
	return nil
}

// LastOfEachKey keeps the last change of each key, in the source's order: they must not
// be sorted before, since a delete may have no revision. An upsert that is older
// than a preceding one of the same key is not the last.
func LastOfEachKey(changes []Change) []Change {
	repeated := repeatedInFew
	if len(changes) > 16 {
		repeated = repeatedInMany
	}
	if !repeated(changes) {
		return changes
	}
	last := make(map[string]lastChange, len(changes))
	for i := range changes {
		last[changes[i].Key] = last[changes[i].Key].then(changes, i)
	}
	kept := make([]Change, 0, len(last))
	for i := range changes {
		if k := last[changes[i].Key]; k.at == i {
			kept = append(kept, k.of(changes[i]))
		}
	}
	return kept
}

// lastChange is the last change of a key so far.
type lastChange struct {
	at      int
	deleted bool
	upsert  uint64 // newest revision of an upsert; 0: there was none
	changes int
}

// then returns the last change after one more.
func (k lastChange) then(changes []Change, i int) lastChange {
	c := &changes[i]
	k.changes++
	if !c.Deleted && !k.deleted && c.Revision < k.upsert {
		return k
	}
	k.at, k.deleted = i, c.Deleted
	if !c.Deleted {
		k.upsert = max(k.upsert, c.Revision)
	}
	return k
}

// of returns the change that is kept.
func (k lastChange) of(c Change) Change {
	if c.Deleted && k.upsert > 0 && c.Revision <= k.upsert {
		c.Revision, c.unnumbered = k.upsert, true
	}
	c.conflated = k.changes > 1
	return c
}

// repeatedInFew reports whether a key occurs twice in a small transaction, without
// allocating.
func repeatedInFew(changes []Change) bool {
	for i := range changes {
		for j := range i {
			if changes[i].Key == changes[j].Key {
				return true
			}
		}
	}
	return false
}

// repeatedInMany looks keys up in a table of its own: a snapshot may have millions, for which a map takes
// several times as long and as much memory.
func repeatedInMany(changes []Change) bool {
	table := make([]uint64, 1<<bits.Len(uint(len(changes)*3/2))) // half of a hash, and the number of a change from 1 on; 0: free
	mask := uint64(len(table)) - 1
	seed := maphash.MakeSeed()
	for i := range changes {
		hash := maphash.String(seed, changes[i].Key)
		entry := hash&^math.MaxUint32 | uint64(i+1)
		at := hash & mask
		for ; table[at] != 0; at = (at + 1) & mask {
			other := table[at]
			if (other^entry)>>32 == 0 && changes[other&math.MaxUint32-1].Key == changes[i].Key {
				return true
			}
		}
		table[at] = entry
	}
	return false
}

// DropKnown drops what is known already, as happens where a snapshot and the changes
// after it overlap.
func DropKnown(changes []Change, isKnown func(*Change) (bool, error)) (news []Change, duplicates int, err error) {
	for i := range changes {
		known, err := isKnown(&changes[i])
		if err != nil {
			return nil, 0, err
		}
		switch {
		case known && duplicates == 0:
			news = slices.Clone(changes[:i])
			duplicates++
		case known:
			duplicates++
		case duplicates > 0:
			news = append(news, changes[i])
		}
	}
	if duplicates == 0 {
		return changes, 0, nil
	}
	return news, duplicates, nil
}
