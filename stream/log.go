package stream

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// History bounds how far back a log can resume readers. Upserts need no history:
// every live resource is there anyway. What is bounded is the memory of deletes.
// The zero value of a field is its default.
type History struct {
	// MaxAge is how long deletes are remembered; 10 minutes by default.
	MaxAge time.Duration
	// MaxDeletes is how many deletes are remembered; 100,000 by default.
	MaxDeletes int
	// MaxBytes is how many bytes of deletes are remembered; 16 MiB by default.
	MaxBytes int64
}

func (h History) withDefaults() History {
	h.MaxAge = cmp.Or(h.MaxAge, 10*time.Minute)
	h.MaxDeletes = cmp.Or(h.MaxDeletes, 100_000)
	h.MaxBytes = cmp.Or(h.MaxBytes, 16<<20)
	return h
}

// LogConfig is what a log needs to know.
type LogConfig struct {
	// Watch is the name of the watch; it stands in every frame.
	Watch string
	// History bounds the memory of deletes.
	History History
	// DeletesUnnumbered: see the interface of that name.
	DeletesUnnumbered bool
}

// Change is one resource of a transaction, or of a snapshot.
type Change struct {
	Resource
	// Deleted: the resource is gone; of it only Key and Revision count.
	Deleted bool

	// inferred: it was missing in a snapshot. When it was deleted is not known.
	inferred bool
}

// Log is the shared primed cache of one watch: a compacting, multi-version log
// in revision order. It holds the newest entry of each key, and tombstones for
// the history that resuming needs.
//
// Entries live in segments of about 64 KiB: one slab with ready-made frames and
// a small table. A new entry for a key is appended at the tail; the old one is
// marked with the seq that superseded it. So a reader at seq T sees what is not
// newer than T and was not superseded at T, with no copy and no lock, however
// long it takes. Snapshot, resume, live and catching up after being slow are one
// operation: what is newer than my cursor, as of the head (see Subscription).
//
// Why not a channel for each subscriber? It costs memory and a copy for each, it
// wants a policy for full channels, and its hand-over from snapshot to live is
// the classic place to lose or repeat events. Why not versions over a
// copy-on-write tree? A slow reader pins every version since, a snapshot is a
// pointer chase, and resume needs a second structure.
//
// One goroutine at a time may call the methods that write (Replace, Commit,
// SetStatus, Discard). Any number may call the others.
type Log struct {
	// Static after construction.
	watch      string
	history    History
	unnumbered bool
	framing    framing

	// Published by the writer, read by all.
	head atomic.Pointer[version]
	// The versions that pages of a listing are read from.
	pages pageVersions

	// Owned by the writer.
	next       version // becomes the head at the next publish
	index      *index
	deletes    tombstones
	sweep      uint64 // compaction has looked at segments up to this seq
	used, dead int64  // bytes of frames, and how many of them are superseded
	allocated  int64  // bytes of slabs and tables
}

// NewLog returns an empty log: not primed, with the status Priming.
func NewLog(c LogConfig) *Log {
	l := &Log{
		watch: c.Watch, history: c.History.withDefaults(), unnumbered: c.DeletesUnnumbered,
		framing: newFraming(c.Watch),
	}
	l.index = newIndex(0)
	l.next.status = Status{State: Priming, Since: time.Now(), Reason: "no snapshot yet"}
	l.publish()
	return l
}

// CommitResult says what became of the changes of a commit.
type CommitResult struct {
	Upserts, Deletes int
	// Duplicates were known already and dropped.
	Duplicates int
	// Reset says that subscribers were given a new revision order.
	Reset bool
}

// Commit appends one transaction. The log must be primed. Everything up to
// revision is then in the log; a transaction without changes is progress.
//
// Changes that the log has already are dropped. An upsert that is news and yet
// not newer than the last commit, or a revision below it, is ErrOrder: a broken
// promise of the source. Nothing is changed then.
func (l *Log) Commit(changes []Change, revision uint64) (CommitResult, error) {
	var result CommitResult
	if !l.next.primed() {
		return result, fmt.Errorf("%w: a commit before the first snapshot", ErrInvalid)
	}
	if revision < l.next.revision {
		return result, fmt.Errorf("%w: commit at %d after one at %d", ErrOrder, revision, l.next.revision)
	}
	changes, revision, err := l.checked(changes, revision)
	if err != nil {
		return result, err
	}
	changes, result.Duplicates, err = l.news(foldKeys(changes))
	if err != nil {
		return result, err
	}
	l.append(changes, revision, &result)
	l.publish()
	return result, nil
}

// checked refuses what must not enter a log, and returns the changes by rising
// revision and the revision that covers them all.
func (l *Log) checked(changes []Change, revision uint64) ([]Change, uint64, error) {
	sorted := true
	for i := range changes {
		c := &changes[i]
		if err := checkChange(c); err != nil {
			return nil, 0, err
		}
		revision = max(revision, c.Revision)
		sorted = sorted && (i == 0 || changes[i-1].Revision <= c.Revision)
	}
	if sorted {
		return changes, revision, nil
	}
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return changes, revision, nil
}

func checkChange(c *Change) error {
	if c.Deleted {
		return nil
	}
	if c.Revision == 0 {
		return fmt.Errorf("%w: key %q has revision 0", ErrInvalid, c.Key)
	}
	if len(c.Value) == 0 || !oneLine(c.Value) {
		return fmt.Errorf("%w: the value of key %q is not JSON on one line", ErrInvalid, c.Key)
	}
	return nil
}

// foldKeys keeps the last change of each key, in order.
func foldKeys(changes []Change) []Change {
	repeated := repeatedInFew
	if len(changes) > 16 {
		repeated = repeatedInMany
	}
	if !repeated(changes) {
		return changes
	}
	last := make(map[string]int, len(changes))
	for i := range changes {
		last[changes[i].Key] = i
	}
	kept := make([]Change, 0, len(last))
	for i := range changes {
		if last[changes[i].Key] == i {
			kept = append(kept, changes[i])
		}
	}
	return kept
}

// repeatedInFew says whether a key stands twice in a small transaction, without
// an allocation.
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

func repeatedInMany(changes []Change) bool {
	seen := make(map[string]struct{}, len(changes))
	for i := range changes {
		seen[changes[i].Key] = struct{}{}
	}
	return len(seen) < len(changes)
}

// news drops what the log has already, as it happens where a snapshot and the
// changes after it overlap.
func (l *Log) news(changes []Change) (news []Change, duplicates int, err error) {
	for i := range changes {
		known, err := l.known(&changes[i])
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

// known says whether a change of a transaction is in the log already.
func (l *Log) known(c *Change) (bool, error) {
	head := l.next.revision
	if c.Revision > head {
		return false, nil
	}
	_, s, e := l.lookup(newWireKey(c.Key))
	if c.Deleted {
		// It has no revision of its own, or it comes a second time. What is not
		// live was deleted before; what is newer was created since.
		return e == nil || e.is(isDelete) || c.Revision != 0 && c.Revision < e.revision, nil
	}
	if e != nil && c.Revision <= l.framing.shownRevision(s, e) {
		return true, nil
	}
	return false, fmt.Errorf("%w: key %q changed at %d, after everything up to %d was committed",
		ErrOrder, c.Key, c.Revision, head)
}

// lookup finds the newest entry of a key, a tombstone too, and the slot of the
// index where it is or belongs.
func (l *Log) lookup(k wireKey) (slot int, s *segment, e *entry) {
	slot = l.index.probe(k.hash, func(seq uint64) bool {
		s, e = l.next.find(seq)
		if e != nil && l.framing.keyEquals(s, e, k) {
			return true
		}
		s, e = nil, nil
		return false
	})
	return slot, s, e
}

// append writes a checked transaction to the tail.
func (l *Log) append(changes []Change, revision uint64, result *CommitResult) {
	now := time.Now()
	before := l.next.revision
	var last *entry
	for i := range changes {
		if changes[i].Deleted {
			last = l.appendDelete(changes[i], before, now)
			result.Deletes++
			continue
		}
		last = l.appendUpsert(&changes[i])
		result.Upserts++
	}
	l.next.revision = revision
	l.next.committed = now
	if last == nil {
		return
	}
	last.flags |= endsCommit
	l.forget(now)
	l.compact()
}

func (l *Log) appendUpsert(c *Change) *entry {
	e := l.appendChange(c)
	e.valueLen = uint32(len(c.Value))
	if c.Encoding != "" {
		e.flags |= valueBase64
	}
	l.next.count++
	return e
}

// appendDelete writes a tombstone. One without a revision of its own gets its
// place behind the last commit, and shows that commit's revision if it has none
// to show.
func (l *Log) appendDelete(c Change, before uint64, now time.Time) *entry {
	if c.Revision == 0 {
		c.Revision = before
	}
	e := l.appendChange(&c)
	e.flags |= isDelete
	if c.Revision <= before || c.inferred {
		e.flags |= isBorrowed
		e.revision = max(before, c.Revision)
	}
	l.deletes.push(tombstone{seq: e.seq, at: now})
	l.deletes.bytes += int64(e.size)
	l.next.tombstones++
	return e
}

// appendChange writes the frame and its entry, and supersedes the older one.
func (l *Log) appendChange(c *Change) *entry {
	k := newWireKey(c.Key)
	if l.index.full() {
		l.growIndex()
	}
	slot, oldSegment, old := l.lookup(k)
	size := l.framing.frameSize(c, k)
	s := l.tailFor(size)
	e, frame := s.next(size)
	l.framing.appendFrame(frame, c, k)
	l.next.seq++
	e.seq, e.revision, e.flags = l.next.seq, c.Revision, k.flags
	e.keyLen, e.hash = uint32(len(k.text)), k.hash
	l.next.tail = s.n
	if s.n == 1 {
		l.next.first = append(l.next.first, e.seq)
	}
	l.used += int64(size)
	if old != nil {
		l.supersede(oldSegment, old, e.seq)
	}
	l.index.set(slot, k.hash, e.seq)
	return e
}

// supersede takes an entry out of every version from seq on.
func (l *Log) supersede(s *segment, e *entry, seq uint64) {
	e.superseded.Store(seq)
	s.dead += int(e.size)
	l.dead += int64(e.size)
	if e.is(isDelete) {
		l.next.tombstones--
		l.deletes.bytes -= int64(e.size)
		return
	}
	l.next.count--
}

// tailFor returns the last segment, or a new one if the frame does not fit.
func (l *Log) tailFor(size int) *segment {
	if n := len(l.next.segments); n > 0 && l.next.segments[n-1].fits(size) {
		return l.next.segments[n-1]
	}
	// Slabs grow with the log. As many entries as frames of this size would
	// fill, and some more.
	bytes := max(size, smallestSegment, int(min(l.used, segmentSize)))
	s := newSegment(bytes, bytes/size*5/4+4)
	l.next.segments = append(l.next.segments, s)
	l.allocated += s.bytes()
	return s
}

// growIndex makes a table for the keys that have an entry, and room for as many
// more. Readers keep the old one.
func (l *Log) growIndex() {
	grown := newIndex(2 * (l.next.count + l.next.tombstones + 8))
	for i := range l.next.segments {
		entries := l.next.entries(i)
		for j := range entries {
			e := &entries[j]
			if e.superseded.Load() == 0 {
				grown.set(grown.probe(e.hash, func(uint64) bool { return false }), e.hash, e.seq)
			}
		}
	}
	l.index = grown
}

// Replace takes a complete snapshot, in any order, in which every resource up to
// revision stands.
//
// The first one, and one in another revision order (epoch), begins a new
// generation: subscribers get reset. Else the snapshot ends an outage: what has
// the same revision is dropped, what is missing becomes a delete at revision,
// and all of it becomes visible as one transaction.
//
// A snapshot that is older than what the log has, as a whole or in a single key,
// is refused with ErrBehind: taking it would go back in time.
func (l *Log) Replace(epoch string, snapshot []Resource, revision uint64) (CommitResult, error) {
	var result CommitResult
	changes := make([]Change, len(snapshot))
	for i := range snapshot {
		changes[i].Resource = snapshot[i]
	}
	changes, revision, err := l.checked(changes, revision)
	if err != nil {
		return result, err
	}
	changes = foldKeys(changes)
	result.Duplicates = len(snapshot) - len(changes)
	epoch = CanonicalEpoch(epoch)
	if epoch == l.next.epoch {
		return l.resync(changes, revision, result)
	}
	result.Reset = true
	l.restart(epoch)
	l.index = newIndex(len(changes))
	l.append(changes, revision, &result)
	l.next.origin, l.next.horizon = revision, l.knownFrom(revision)
	l.next.horizonAge = l.next.committed
	l.next.intact, l.next.readable = l.next.seq, l.next.seq
	l.publish()
	return result, nil
}

// resync commits the difference between the log and a snapshot.
func (l *Log) resync(snapshot []Change, revision uint64, result CommitResult) (CommitResult, error) {
	before := l.next.revision
	if revision < before {
		return result, fmt.Errorf("%w: its snapshot is at %d, %d was served already", ErrBehind, revision, before)
	}
	changes := make([]Change, 0, 16)
	present := make([]uint64, 0, len(snapshot)) // seqs of entries that stand in the snapshot
	for i := range snapshot {
		c := &snapshot[i]
		_, _, e := l.lookup(newWireKey(c.Key))
		live := e != nil && !e.is(isDelete)
		if live {
			present = append(present, e.seq)
		}
		if live && e.revision == c.Revision {
			continue
		}
		if c.Revision <= before {
			return result, fmt.Errorf("%w: key %q is at %d in its snapshot, which contradicts what was served up to %d",
				ErrBehind, c.Key, c.Revision, before)
		}
		changes = append(changes, *c)
	}
	changes = append(changes, l.missing(present, revision)...)
	l.append(changes, revision, &result)
	l.addGap(before, l.knownFrom(revision))
	l.publish()
	return result, nil
}

// knownFrom is the first revision from which all is known after a snapshot. Where
// deletes have no revision of their own, it is not the snapshot's: a reader may
// have been there before the last deletes, and the snapshot says nothing of them.
func (l *Log) knownFrom(snapshot uint64) uint64 {
	if l.unnumbered {
		return snapshot + 1
	}
	return snapshot
}

// missing returns a delete for each live resource that is not present. Where
// deletes have no revision of their own, a reader at this very revision may still
// hold it; so they are repeated to such a reader, as borrowed ones are.
func (l *Log) missing(present []uint64, revision uint64) []Change {
	var deletes []Change
	slices.Sort(present)
	l.next.each(l.next.seq, func(s *segment, e *entry) bool {
		if len(present) > 0 && present[0] == e.seq {
			present = present[1:]
			return true
		}
		deletes = append(deletes, Change{
			Resource: Resource{Key: l.framing.key(s, e), Revision: revision}, Deleted: true, inferred: true,
		})
		return true
	})
	return deletes
}

// maxGaps bounds what resuming readers are checked against.
const maxGaps = 64

func (l *Log) addGap(from, to uint64) {
	if to <= from+1 {
		return
	}
	v := &l.next
	gaps := make([]gap, 0, len(v.gaps)+1)
	for _, g := range v.gaps {
		if g.to > v.horizon {
			gaps = append(gaps, g)
		}
	}
	if len(gaps) == maxGaps {
		v.horizon, v.horizonAge = max(v.horizon, gaps[0].to), v.committed
		gaps = gaps[1:]
	}
	v.gaps = append(gaps, gap{from, to})
}

// SetStatus publishes the freshness of the watch.
func (l *Log) SetStatus(s Status) {
	l.next.status = s
	l.publish()
}

// Discard forgets everything: the next Replace begins a new generation, and
// subscribers that are still there wait for it.
func (l *Log) Discard(s Status) {
	l.restart("")
	l.next.status = s
	l.publish()
}

// restart begins a new generation with nothing in it.
func (l *Log) restart(epoch string) {
	v := &l.next
	*v = version{
		generation: v.generation + 1,
		epoch:      epoch,
		seq:        v.seq,
		intact:     v.seq,
		readable:   v.seq,
		status:     v.status,
	}
	l.index = newIndex(0)
	l.deletes = tombstones{}
	l.sweep, l.used, l.dead, l.allocated = v.seq, 0, 0, 0
}

// publish makes what was written visible, and wakes the readers.
func (l *Log) publish() {
	v := l.next
	v.index = l.index
	v.changed = make(chan struct{})
	v.bytes = l.allocated + l.index.bytes() + l.deletes.memory()
	if old := l.head.Swap(&v); old != nil {
		close(old.changed)
	}
	l.pages.expire()
}

// Status returns the freshness of the watch.
func (l *Log) Status() Status { return l.head.Load().status }
