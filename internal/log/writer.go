package log

import (
	"fmt"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/signal"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Writer is the writing side of a log. Readers are given its Log, which has no method
// that writes; a Writer has the methods of its Log too.
//
// A Writer belongs to one goroutine at a time, the ingest of the watch.
type Writer struct {
	// Static after construction.
	*Log
	history Retention

	// Owned by the goroutine that writes.
	upcoming
	usage
	next        *storage.Version // becomes the head at the next publish; nil in a part with nothing new, see open
	unnumbered  bool             // deletes have no revision in the epoch
	prefetched  byte             // see prefetch; nothing reads it
	index       *storage.Index
	indexed     uint64 // number of the first version that holds the index
	listed      uint64 // number of the first version that holds the list of segments
	deletes     storage.Tombstones
	deleteBytes int64 // frames of those not superseded
	recent      storage.Superseded
	sweep       uint64 // compaction has examined segments up to this seq
}

// upcoming is what a writer knows about the next commit or snapshot before it has its changes.
type upcoming struct {
	fromSnapshot bool          // what is being appended comes from one
	overlaps     bool          // the next transactions may repeat older changes; see Overlap
	conflated    bool          // the next commit may lack values; see stream.SinkExtension
	reserved     bool          // see Reserve
	earlier      *Earlier      // of the next snapshot; nil: nothing is known
	source       string        // the name that the source has for the epoch of the next snapshot
	age          time.Duration // of the changes of the next commit; 0: not known
}

// usage is the memory that a writer counts.
type usage struct {
	used, dead int64         // bytes of frames, and of the superseded ones
	allocated  int64         // bytes of slabs and tables
	added      int64         // of them, by the version being made
	beside     int64         // bytes beside the log, which are counted with it; see Derived.Beside
	retired    []pin.Retired // by the version being made
}

// allocate counts a segment that the version being made adds.
func (u *usage) allocate(s *storage.Segment) {
	u.allocated += s.Bytes()
	u.added += s.Bytes()
}

// retire records memory that the versions from born on held.
func (u *usage) retire(born uint64, bytes int64) {
	if n := len(u.retired); n > 0 && u.retired[n-1].Born == born {
		u.retired[n-1].Bytes += bytes
		return
	}
	u.retired = append(u.retired, pin.Retired{Born: born, Bytes: bytes})
}

// advance begins to count for the version after the one that is about to be published.
func (u *usage) advance() {
	u.retired, u.added = u.retired[:0], 0
	if cap(u.retired) > retiredKept {
		u.retired = nil
	}
}

// NewWriter returns the writer of a new log, which is empty: not primed, with the status
// Priming.
func NewWriter(c Config) *Writer {
	l := &Log{
		watch: c.Watch, framing: storage.NewFormat(c.Watch), account: c.Account, counted: c.Counted, goesOn: c.GoesOn,
	}
	l.pins = pin.NewSet(c.Account, &l.head)
	if l.counted == nil {
		l.counted = func(int, int) {}
	}
	c.Account.Join(l.pins)
	status := &stream.Status{State: stream.Priming, Since: time.Now(), Reason: "no snapshot yet"}
	w := &Writer{Log: l, history: c.History.WithDefaults(), index: storage.NewIndex(0), next: &storage.Version{Number: 1, Status: status}}
	w.publish()
	return w
}

// Commit appends one transaction. The log must be primed. Everything up to
// revision is then in the log; a transaction without changes is progress.
//
// Changes that the log already has are dropped. A new upsert that is not newer than
// the last commit, another value of a revision that the log has, or a revision below the last
// commit, is ErrOrder: the source has broken its promise. So is an older change of a key, except
// where it may be repeated; see Overlap. A change that is newer than revision is ErrInvalid. A transaction that
// does not fit into the memory of the watch is memory.ErrExceeded; deletes alone always
// fit. The log is unchanged if there is an error.
func (w *Writer) Commit(changes []Change, revision uint64) (CommitResult, error) {
	return w.CommitCompleteTo(changes, revision, stream.AllDeletes)
}

// CommitCompleteTo is Commit with what the source reported about deletes; see stream.SinkExtension.
func (w *Writer) CommitCompleteTo(changes []Change, revision, deletesTo uint64) (CommitResult, error) {
	var result CommitResult
	if !w.next.Primed() {
		return result, fmt.Errorf("%w: a commit before the first snapshot", stream.ErrInvalid)
	}
	if revision < w.next.Revision {
		return result, fmt.Errorf("%w: commit at %d after one at %d", stream.ErrOrder, revision, w.next.Revision)
	}
	if err := Check(changes, revision); err != nil {
		return result, err
	}
	changes, duplicates, err := DropKnown(LastOfEachKey(changes), w.known)
	if err != nil {
		return result, err
	}
	result.Duplicates = duplicates
	order := w.order()
	changes = order.Arrange(changes)
	if !w.reserved {
		if err := w.account.Grow(w.cost(changes)); err != nil {
			return result, err
		}
	}
	before := w.next.Revision
	last := w.append(order, changes, revision, &result)
	w.overlaps = w.overlaps && last == nil
	last.ClearEndInOutage(revision, w.next.Origin)
	w.next.CloseOutage(before, last)
	w.deletesCompleteTo(deletesTo)
	w.publish()
	return result, nil
}

// Reserve reserves memory for a transaction that is to be committed once it is on a disk: no commit
// is refused for its memory until Unreserve, which the caller must call.
func (w *Writer) Reserve(changes []Change) error {
	if err := w.account.Grow(w.cost(changes)); err != nil {
		return err
	}
	w.reserved = true
	return nil
}

// Unreserve ends what Reserve began, and returns what was not used.
func (w *Writer) Unreserve() {
	w.reserved = false
	w.account.SetLog(w.holds()-w.dead, w.dead)
}

// slot is lookup for a key that is about to be set.
func (w *Writer) slot(k storage.Key) (slot int, s *storage.Segment, e *storage.Entry) {
	if w.index.Full() {
		w.growIndex()
	}
	return w.lookup(k)
}

// lookup finds the newest entry of a key, possibly a tombstone, and the slot of the
// index where it is or belongs.
func (w *Writer) lookup(k storage.Key) (slot int, s *storage.Segment, e *storage.Entry) {
	v := w.next
	if v == nil {
		v = w.head.Load()
	}
	slot = w.index.Probe(k.Hash, func(seq uint64) bool {
		s, e = v.Find(seq)
		if e != nil && w.framing.KeyEquals(s, e, k) {
			return true
		}
		s, e = nil, nil
		return false
	})
	return slot, s, e
}

// PrepareStatus sets the freshness that the next commit or snapshot publishes.
func (w *Writer) PrepareStatus(s stream.Status) { w.next.Status = &s }

// Prepare sets whether the next commit may lack values, and the age of its changes.
func (w *Writer) Prepare(conflated bool, age time.Duration) { w.conflated, w.age = conflated, age }

// PrepareSourceEpoch sets the name that the source has for the epoch of the snapshots from now on.
func (w *Writer) PrepareSourceEpoch(name string) { w.source = name }

// SetStatus publishes the freshness of the watch.
func (w *Writer) SetStatus(s stream.Status) {
	w.next.Status = &s
	w.publish()
}

// Discard forgets everything: the next Replace begins a new generation, and existing
// subscribers wait for it.
func (w *Writer) Discard(s stream.Status) {
	w.restart("")
	w.next.Status = &s
	w.publish()
}

// restart begins a new, empty generation.
func (w *Writer) restart(epoch string) {
	v := w.next
	for _, s := range v.Segments {
		w.retire(s.Born, s.Bytes())
	}
	w.retire(w.indexed, w.index.Bytes())
	*v = storage.Version{
		Number:     v.Number,
		Generation: v.Generation + 1,
		Epoch:      epoch,
		Seq:        v.Seq,
		Contents:   storage.Contents{Intact: v.Seq, Readable: v.Seq},
		Status:     v.Status,
	}
	if w.unnumbered = strings.HasPrefix(epoch, stream.UnnumberedEpoch); w.unnumbered || w.goesOn {
		v.Run = storage.NewRun()
	}
	w.index, w.indexed = storage.NewIndex(0), v.Number
	w.deletes, w.deleteBytes, w.recent = storage.Tombstones{}, 0, storage.Superseded{}
	w.sweep, w.used, w.dead, w.allocated = v.Seq, 0, 0, 0
}

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

// publish makes what was written visible, and wakes the readers.
func (w *Writer) publish() {
	v := w.next
	v.Index = w.index
	v.Changed = new(signal.Signal)
	holds, sorted := w.holds(), w.listings.SortedBytes()
	v.Bytes = holds + sorted
	w.recordRetired(v)
	old := w.head.Load()
	urgent := old == nil || old.Generation != v.Generation || old.Status != v.Status
	if urgent {
		v.Urgent = new(signal.Signal)
	} else {
		v.Urgent = old.Urgent
	}
	if old != nil && old.Generation != v.Generation {
		// No reader continues in the old generation. From here on it can no longer be
		// pinned, and the new one cannot be pinned yet.
		w.pins.TakeAll()
	}
	w.account.SetLog(holds-w.dead, w.dead) // not including sorted: a listing must not make a watch stale
	w.head.Store(v)
	if w.next = nil; !w.isView {
		w.open()
	}
	if old != nil {
		old.Changed.Send()
		if urgent {
			old.Urgent.Send()
		}
	}
	w.Notified()
	w.account.Relieve(w.pins, v.Bytes-w.dead, w.dead)
	w.listings.Expire(w.pins)
	w.listings.ExpireSorted()
	w.keepDigested(v)
	w.releases.expire(w.Log)
}

// holds is how many bytes the version being made holds.
func (w *Writer) holds() int64 {
	return w.allocated + w.beside + w.index.Bytes() + w.deletes.Memory() + w.next.Times.Bytes()
}

// recordRetired counts what the version that is about to be published adds and retires.
func (w *Writer) recordRetired(v *storage.Version) {
	most := w.account.EraBytes(v.Bytes)
	if len(w.retired) > 0 || w.added >= most {
		w.pins.Advance(v.Number, w.retired, w.added, most)
		w.advance()
	}
}

// open begins the next version, unless it is begun. A part has none while it has nothing new:
// there may be very many parts.
func (w *Writer) open() *Writer {
	if w.next == nil {
		next := *w.head.Load()
		next.Number++
		w.next = &next
	}
	return w
}

// retiredKept is the largest capacity of the list of retired memory that is reused.
const retiredKept = 1024

// retire records memory that the versions from born on held, and that the version being
// made does not hold.
func (w *Writer) retire(born uint64, bytes int64) {
	if born != w.next.Number { // else no version held it
		w.usage.retire(born, bytes)
	}
}

// CommitResult describes the effect of a commit.
type CommitResult struct {
	Upserts, Deletes int
	// Duplicates were already known and dropped.
	Duplicates int
	// Reset reports whether subscribers are reset to a new revision order.
	Reset bool
}

// known reports whether a change of a transaction is already in the log. What was
// committed comes again where a snapshot and the changes after it overlap, and where a
// connection continues from an earlier one. What contradicts the log is ErrOrder: to drop it
// would be to serve a state that the upstream does not have.
func (w *Writer) known(c *Change) (bool, error) {
	head := w.next.Revision
	if c.Revision > head {
		return false, nil
	}
	_, s, e := w.lookup(storage.NewKey(c.Key))
	if c.Deleted {
		// It has no revision of its own, or it comes a second time. A key that is
		// not live was deleted before; one that is newer was created since.
		return e == nil || e.Is(storage.IsDelete) || c.Revision != 0 && c.Revision < e.Revision, nil
	}
	switch shown := w.shown(s, e); {
	case c.Revision < shown && w.overlaps:
		return true, nil
	case c.Revision == shown && w.framing.Repeats(s, e, &c.Resource):
		return true, nil
	case c.Revision == shown:
		return false, fmt.Errorf("%w: key %.80q changed a second time at %d", stream.ErrOrder, c.Key, c.Revision)
	}
	return false, fmt.Errorf("%w: key %.80q changed at %d, after everything up to %d was committed",
		stream.ErrOrder, c.Key, c.Revision, head)
}

// shown is the revision of an entry as readers see it; 0: there is none.
func (w *Writer) shown(s *storage.Segment, e *storage.Entry) uint64 {
	if e == nil {
		return 0
	}
	return w.framing.ShownRevision(s, e)
}

// Overlap declares that the next transactions may repeat older changes of keys, up to the
// first one that brings something new: the source has connected again. After a snapshot
// they may as well.
func (w *Writer) Overlap() { w.overlaps = true }

// Where an upstream gives deletes no revision, two replicas may place one differently, or
// notice it at different times: see README.md, "A position says how far deletes without a
// revision are known".

// deletesCompleteTo is called after a commit or a snapshot.
func (w *Writer) deletesCompleteTo(revision uint64) {
	v := w.next
	if !w.unnumbered {
		revision = stream.AllDeletes
	}
	v.DeletesCompleteTo = max(v.DeletesCompleteTo, min(revision, v.Revision))
}

// position is the place of a reader, in an epoch as written in positions.
func (l *Log) position(epoch string, upserts, asOf, deletesTo uint64) stream.Position {
	p := stream.Position{Watch: l.watch, Epoch: epoch, AsOf: deletesTo}.At(asOf)
	p.Upserts = upserts
	return p
}
