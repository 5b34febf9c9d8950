package log

import (
	"cmp"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/memory"
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

// Config configures a log.
type Config struct {
	// Watch is the name of the watch; it is in every frame.
	Watch string
	// History bounds the memory of deletes.
	History History

	// Account counts what the log holds; nil: nothing limits it.
	Account *memory.Account
	// Counted, if not nil, is called when subscriptions are opened or closed, and
	// when the number of readers that they stand for changes, with both differences.
	// Any goroutine may call it.
	Counted func(subscriptions, readers int)
}

// Log is the shared primed cache of one watch: a compacting, multi-version log
// in revision order. It holds the newest entry of each key, and tombstones for
// the history that resuming needs.
//
// Entries live in segments of about 64 KiB: one slab with ready-made frames and a
// small table. A new entry for a key is appended at the tail; the old one is marked
// with the seq that superseded it. So a reader at seq T sees what is not newer than
// T and was not superseded at T, without a copy or a lock, however long it takes.
// Snapshot, resume, live and catching up after being slow are one operation: give
// what is newer than the cursor, as of the head (see Subscription).
//
// Why not a channel for each subscriber? It costs memory and a copy for each, it
// needs a policy for full channels, and its handover from snapshot to live is the
// classic place to lose or repeat events. Why not versions over a copy-on-write
// tree? A slow reader pins every version since, a snapshot is a pointer chase, and
// resume needs a second structure.
//
// One goroutine at a time may call the methods that write (Replace, Commit,
// SetStatus, Discard). Any number of goroutines may call the others.
type Log struct {
	// Static after construction.
	watch   string
	history History
	framing framing
	account *memory.Account
	counted func(subscriptions, readers int)

	// Published by the writer, read by all.
	head atomic.Pointer[version]
	// The versions that readers hold.
	pins *pins
	// The versions from which the pages of a listing are read.
	pages pageVersions
	// Resources by prefix, as counted; nil: not counted yet.
	counts atomic.Pointer[prefixCounts]
	// Resources of one revision by their keys; nil: none.
	sorted atomic.Pointer[[]sortedGroup]

	// Owned by the writer.
	next       version // becomes the head at the next publish
	unnumbered bool    // deletes have no revision in the epoch
	index      *index
	indexed    uint64 // number of the first version that holds the index
	listed     uint64 // number of the first version that holds the list of segments
	deletes    tombstones
	sweep      uint64    // compaction has examined segments up to this seq
	used, dead int64     // bytes of frames, and of the superseded ones
	allocated  int64     // bytes of slabs and tables
	added      int64     // of them, by the version being made
	retired    []retired // by the version being made
	warmed     byte      // see warm; nothing reads it
}

// New returns an empty log: not primed, with the status Priming.
func New(c Config) *Log {
	l := &Log{
		watch: c.Watch, history: c.History.withDefaults(),
		framing: newFraming(c.Watch), account: c.Account, counted: c.Counted, pins: newPins(c.Account),
	}
	if l.counted == nil {
		l.counted = func(int, int) {}
	}
	c.Account.Join(l.pins)
	l.next.number = 1
	l.index = newIndex(0)
	l.next.status = stream.Status{State: stream.Priming, Since: time.Now(), Reason: "no snapshot yet"}
	l.publish()
	return l
}

// Commit appends one transaction. The log must be primed. Everything up to
// revision is then in the log; a transaction without changes is progress.
//
// Changes that the log already has are dropped. A new upsert that is not newer than
// the last commit, or a revision below it, is ErrOrder: the source has broken its
// promise. A change that is newer than revision is ErrInvalid. A transaction that
// does not fit into the memory of the watch is memory.ErrExceeded; deletes alone always fit.
// Nothing is changed then.
func (l *Log) Commit(changes []Change, revision uint64) (CommitResult, error) {
	return l.CommitSwept(changes, revision, stream.AllSwept)
}

// CommitSwept is Commit with what the source reported about deletes; see Swept.
func (l *Log) CommitSwept(changes []Change, revision, swept uint64) (CommitResult, error) {
	var result CommitResult
	if !l.next.primed() {
		return result, fmt.Errorf("%w: a commit before the first snapshot", stream.ErrInvalid)
	}
	if revision < l.next.revision {
		return result, fmt.Errorf("%w: commit at %d after one at %d", stream.ErrOrder, revision, l.next.revision)
	}
	if err := check(changes, revision); err != nil {
		return result, err
	}
	changes, duplicates, err := l.news(foldKeys(changes))
	if err != nil {
		return result, err
	}
	result.Duplicates = duplicates
	changes = l.place().inOrder(changes)
	if err := l.account.Grow(l.cost(changes)); err != nil {
		return result, err
	}
	before := l.next.revision
	last := l.append(changes, revision, &result)
	noEndWithin(last, revision, l.next.origin)
	l.closeOutage(before, last)
	l.sweptTo(swept)
	l.publish()
	return result, nil
}

// lookup finds the newest entry of a key, possibly a tombstone, and the slot of the
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

// PrepareStatus sets the freshness that the next commit or snapshot publishes.
func (l *Log) PrepareStatus(s stream.Status) { l.next.status = s }

// SetStatus publishes the freshness of the watch.
func (l *Log) SetStatus(s stream.Status) {
	l.next.status = s
	l.publish()
}

// Discard forgets everything: the next Replace begins a new generation, and existing
// subscribers wait for it.
func (l *Log) Discard(s stream.Status) {
	l.restart("")
	l.next.status = s
	l.publish()
}

// restart begins a new, empty generation.
func (l *Log) restart(epoch string) {
	v := &l.next
	for _, s := range v.segments {
		l.retire(s.born, s.bytes())
	}
	l.retire(l.indexed, l.index.bytes())
	*v = version{
		number:     v.number,
		generation: v.generation + 1,
		epoch:      epoch,
		seq:        v.seq,
		intact:     v.seq,
		readable:   v.seq,
		status:     v.status,
	}
	if l.unnumbered = strings.HasPrefix(epoch, stream.UnnumberedEpoch); l.unnumbered {
		v.run = newRun()
	}
	l.index, l.indexed = newIndex(0), v.number
	l.deletes = tombstones{}
	l.sweep, l.used, l.dead, l.allocated = v.seq, 0, 0, 0
}

// publish makes what was written visible, and wakes the readers.
func (l *Log) publish() {
	v := l.next
	v.index = l.index
	v.changed = make(chan struct{})
	holds, sorted := l.allocated+l.index.bytes()+l.deletes.memory(), l.sortedBytes()
	v.bytes = holds + sorted
	l.passOn(&v)
	old := l.head.Load()
	if old != nil && old.generation != v.generation {
		// Nobody continues in the old generation. From here on nobody can pin it, and
		// nobody can yet pin the new one.
		l.pins.TakeAll()
	}
	l.account.SetLog(holds-l.dead, l.dead) // without sorted: a listing must not make a watch stale
	l.head.Store(&v)
	if old != nil {
		close(old.changed)
	}
	l.account.Relieve(l.pins, v.bytes)
	l.pages.expire(l.pins)
	l.forgetSorted()
}

// passOn counts what the version that is about to be published adds and retires.
func (l *Log) passOn(v *version) {
	most := l.account.EraBytes(v.bytes)
	if len(l.retired) > 0 || l.added >= most {
		l.pins.pass(v.number, l.retired, l.added, most)
		l.retired, l.added = l.retired[:0], 0
		if cap(l.retired) > retiredKept {
			l.retired = nil
		}
	}
	l.next.number++
}

// retiredKept is how long the list of retired memory may be to be reused.
const retiredKept = 1024

// retire notes memory that the versions from born on held, and the one being made
// does not.
func (l *Log) retire(born uint64, bytes int64) {
	if born == l.next.number {
		return // no version held it
	}
	if n := len(l.retired); n > 0 && l.retired[n-1].born == born {
		l.retired[n-1].bytes += bytes
		return
	}
	l.retired = append(l.retired, retired{born, bytes})
}

// Changed is closed when there is something new: a change, or another status. Get it
// before looking, and nothing is missed.
func (l *Log) Changed() <-chan struct{} { return l.head.Load().changed }

// Status returns the freshness of the watch.
func (l *Log) Status() stream.Status { return l.head.Load().status }
