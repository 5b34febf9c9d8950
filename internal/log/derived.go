package log

import (
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/signal"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Derived is the writing side of a log that is worked out from another one, and whose
// resources are not those of the other log: counts, for example. Its entries have seqs of
// their own. Each of its states reflects one state of the other log, and has its revision
// and its freshness.
//
// Where deletes have no revision in the other log, its seqs are the revisions of the derived
// log: a position is then of use at one replica only, and the epoch must say so.
//
// What is added becomes visible with Publish. A Derived belongs to one goroutine at a time.
type Derived struct {
	w     *Writer
	fresh bool           // the generation is not published yet
	lacks bool           // Lacks was called since the last Publish
	added int64          // bytes of frames, since the last Publish
	dead  int64          // bytes of superseded frames, as of the last Publish
	last  *storage.Entry // of the transaction that is being added; nil: it has none yet
}

// NewDerived returns a log without entries that is to be derived from another one: not primed,
// with the status Priming. Its Log is read like any other.
func NewDerived(from *Log, c Config) *Derived {
	w := NewWriter(c)
	w.isView, w.from = true, from // nobody reads it yet
	return &Derived{w: w}
}

// Log returns the derived log.
func (d *Derived) Log() *Log { return d.w.Log }

// DerivedRevision is the revision of a log derived from s, once it reflects s.
func (s Snapshot) DerivedRevision() uint64 { return derivedRevision(s.v) }

func derivedRevision(of *storage.Version) uint64 {
	if numbersItself(of) {
		return of.Seq
	}
	return of.Revision
}

// numbersItself reports whether a log derived from a version has no use for its revisions.
func numbersItself(of *storage.Version) bool {
	return strings.HasPrefix(of.Epoch, stream.UnnumberedEpoch)
}

// DerivedRevisionOf is the revision, in a log derived from s, of a transaction that ends with e.
func (s Snapshot) DerivedRevisionOf(e Entry) uint64 {
	if numbersItself(s.v) {
		return e.e.Seq
	}
	return e.e.Revision
}

// Begin begins a new generation, which reflects the state s, in a revision order of its own.
// Readers may resume from the revision of s on.
func (d *Derived) Begin(s Snapshot, epoch string) {
	w := d.w.open()
	w.restart(epoch)
	w.next.OfGeneration = s.v.Generation
	w.next.Horizon, w.next.HorizonAge = derivedRevision(s.v), s.v.Committed
	w.next.Since, w.next.Run.Horizon = w.next.Horizon, w.next.Horizon
	d.fresh, d.lacks, d.added, d.dead, d.last = true, false, 0, 0, nil
}

// Upsert adds a new value of a resource. Revisions must not fall, and must be the same for all
// of a transaction.
func (d *Derived) Upsert(r stream.Resource) {
	d.add(d.w.open().appendUpsert(&Change{Resource: r}))
}

// Delete adds the delete of a resource that the log has.
func (d *Derived) Delete(key string, revision uint64) {
	e := d.w.open().appendChange(&Change{Resource: stream.Resource{Key: key, Revision: revision}, Deleted: true})
	d.w.remember(e, time.Now())
	d.add(e)
}

func (d *Derived) add(e *storage.Entry) {
	d.added += int64(e.Size)
	d.last = e
}

// EndTransaction ends a transaction. It may be empty.
func (d *Derived) EndTransaction() {
	if d.last != nil {
		d.last.Flags |= storage.EndsCommit
		d.last = nil
	}
}

// Lacks records that a reader from elsewhere may have seen states before a revision that this
// log has not: no reader from before it resumes.
func (d *Derived) Lacks(revision uint64) {
	next := d.w.open().next
	if d.last != nil {
		d.last.Flags |= storage.Conflated
	}
	if revision > next.Horizon {
		next.Horizon, next.HorizonAge = revision, time.Now()
	}
	next.Run.Horizon = max(next.Run.Horizon, revision)
	next.Conflated, next.ConflatedSeq = max(next.Conflated, revision), next.Seq
	d.lacks = true
}

// Beside counts bytes that are kept beside the log as the log's, in place of those that were
// counted before.
func (d *Derived) Beside(bytes int64) {
	w := d.w.open()
	w.beside = bytes
	w.account.SetLog(w.holds()-w.dead, w.dead)
}

// Publish makes visible what was added, as what is derived from the state s. Readers that wait
// are woken if anything was, if the status or the origin is another one, or if they wait for
// any new state.
func (d *Derived) Publish(s Snapshot) {
	w := d.w
	if !d.fresh && !d.lacks && d.added == 0 && d.reflect(s) && !w.wanted.Swap(false) {
		return
	}
	w.wanted.Store(false)
	before := w.head.Load().Seq
	reflectDerived(w.open().next, s.v)
	switch {
	case d.fresh:
		w.next.Intact, w.next.Readable = w.next.Seq, w.next.Seq
		w.pack()
	case d.added > 0:
		w.recent.Add(before, w.dead-d.dead, s.v.Committed, w.history.MaxAge)
		w.next.Times = w.next.Times.Add(before+1, s.v.Committed, true, storage.CommitSpacing(w.history.MaxAge))
		w.forgetDeletes(time.Now())
		w.compactAfter(d.added)
	}
	d.fresh, d.lacks, d.added, d.dead, d.last = false, false, 0, w.dead, nil
	w.publish()
}

// Reflects reports whether the log has what a state of the other log has, and its revision and its
// freshness.
func (d *Derived) Reflects(s Snapshot) bool {
	v := d.w.head.Load()
	return v.Primed() && !v.Stalled && v.OfGeneration == s.v.Generation && v.Of == s.v.Number && v.OfSeq == s.v.Seq &&
		v.Revision == derivedRevision(s.v) && v.Origin == originOf(s.v) && storage.SameStatus(v.Status, s.v.Status)
}

// reflect makes the newest version reflect a state that changes nothing for its readers. It
// returns false if it changes something.
func (d *Derived) reflect(s Snapshot) bool {
	for {
		v := d.w.head.Load()
		if !storage.SameStatus(v.Status, s.v.Status) || v.Origin != originOf(s.v) {
			return false
		}
		next := *v
		reflectDerived(&next, s.v)
		if d.w.head.CompareAndSwap(v, &next) {
			return true
		}
	}
}

// originOf is the origin of a log that is derived from a version.
func originOf(of *storage.Version) uint64 {
	if numbersItself(of) {
		return 0
	}
	return of.Origin
}

// reflectDerived takes over what a derived log has in common with the other one.
func reflectDerived(v, of *storage.Version) {
	horizon, run := v.Horizon, v.Run
	v.ReflectDerived(of)
	if numbersItself(of) {
		v.Revision, v.Origin, v.OriginPending, v.Horizon, v.Run = of.Seq, 0, false, horizon, run
	}
	v.DeletesCompleteTo = v.Revision
}

// SetStatus publishes the freshness of the log, until it next reflects another state of the
// other log, and nothing of what was added.
func (d *Derived) SetStatus(status stream.Status) { d.setStatus(status, false) }

// Stall publishes the freshness of the log, until Publish or Discard: it is not in step with the
// other log.
func (d *Derived) Stall(status stream.Status) { d.setStatus(status, true) }

func (d *Derived) setStatus(status stream.Status, stalled bool) {
	if next := d.w.next; next != nil {
		next.Status = &status
	}
	for {
		v := d.w.head.Load()
		next := *v
		next.Status, next.Changed, next.Urgent = &status, new(signal.Signal), new(signal.Signal)
		next.Stalled = next.Stalled || stalled
		if d.w.head.CompareAndSwap(v, &next) {
			v.Changed.Send()
			v.Urgent.Send()
			d.w.Notified()
			return
		}
	}
}

// Discard forgets everything; see Writer.Discard.
func (d *Derived) Discard(s stream.Status) {
	d.fresh, d.lacks, d.added, d.dead, d.last = false, false, 0, 0, nil
	d.w.open().Discard(s)
}

// derivedNewest returns the newest version of a derived log. If nothing has changed in the other
// log since, it reflects the newest state of that one. What readers must be told is for Publish.
func (l *Log) derivedNewest() *storage.Version {
	of := l.from.newest() // before the derived log itself, which then has at least what it is derived from
	for {
		v := l.head.Load()
		changed := v.OfGeneration != of.Generation || v.OfSeq != of.Seq || v.Origin != originOf(of) || !storage.SameStatus(v.Status, of.Status)
		// The revision of a view can rise without another version.
		newer := v.Of > of.Number || v.Of == of.Number && v.Revision >= derivedRevision(of)
		if v.Stalled || !v.Primed() || changed || newer {
			return v
		}
		next := *v
		reflectDerived(&next, of)
		if l.head.CompareAndSwap(v, &next) {
			return &next
		}
	}
}
