package log

import (
	"fmt"
	"time"

	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// Replace takes a complete snapshot: every resource up to revision, in any order.
//
// The first one, and one in another revision order (epoch), begins a new generation:
// subscribers get reset. Otherwise the snapshot ends an outage: a resource with an
// unchanged revision is dropped, a missing one becomes a delete at revision, and all
// of it becomes visible as one transaction.
//
// A snapshot that is older than what the log has, as a whole or in a single key,
// is refused with ErrBehind: taking it would go back in time. One that holds a
// resource newer than revision is ErrInvalid, and one that does not fit into the
// memory of the watch is memory.ErrExceeded. The log is unchanged if there is an error.
func (w *Writer) Replace(epoch string, snapshot []stream.Resource, revision uint64) (CommitResult, error) {
	return w.ReplaceSwept(epoch, snapshot, revision, stream.AllDeletes)
}

// ReplaceSwept is Replace with what the source reported about deletes; see stream.SinkExtension.
func (w *Writer) ReplaceSwept(epoch string, snapshot []stream.Resource, revision, swept uint64) (CommitResult, error) {
	var result CommitResult
	changes := make([]Change, len(snapshot))
	for i := range snapshot {
		changes[i].Resource = snapshot[i]
	}
	if err := Check(changes, revision); err != nil {
		return result, err
	}
	w.fromSnapshot = true
	defer func() { w.fromSnapshot, w.overlaps = false, true }()
	changes = w.order().Arrange(LastOfEachKey(changes))
	result.Duplicates = len(snapshot) - len(changes)
	epoch = stream.CanonicalEpoch(epoch)
	if epoch == w.next.Epoch {
		return w.resync(changes, revision, swept, result)
	}
	return w.begin(epoch, changes, revision, swept, result)
}

// Restore is Replace with the history that the upstream still has: changes also has a delete for
// each resource that was deleted after the revision horizon, by rising revision. So readers may resume
// from there on. What else changed since then has only its newest value, so that parts of the log
// begin anew. In the revision order that the log has already, the history is not needed.
func (w *Writer) Restore(epoch string, changes []Change, horizon, revision uint64) (CommitResult, error) {
	var result CommitResult
	if err := Check(changes, revision); err != nil {
		return result, err
	}
	if epoch = stream.CanonicalEpoch(epoch); epoch == w.next.Epoch || horizon > revision {
		return result, fmt.Errorf("%w: a history from %d to %d in the order %q", stream.ErrInvalid, horizon, revision, epoch)
	}
	w.fromSnapshot = true
	defer func() { w.fromSnapshot, w.overlaps, w.conflated = false, true, false }()
	w.conflated = horizon < revision
	w.restored = &horizon
	defer func() { w.restored = nil }()
	return w.begin(epoch, Order{}.Arrange(LastOfEachKey(changes)), revision, stream.AllDeletes, result)
}

// begin builds a log from nothing but a snapshot.
func (w *Writer) begin(epoch string, snapshot []Change, revision, swept uint64, result CommitResult) (CommitResult, error) {
	needs := w.snapshotCost(snapshot)
	crowded := w.account.Crowded(needs)
	if err := w.account.Replace(needs); err != nil {
		return result, err
	}
	result.Reset = true
	if crowded {
		status := w.next.Status
		w.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: "making room for a new snapshot"})
		w.next.Status = status
	}
	w.restart(epoch)
	w.index, w.indexed = storage.NewIndex(len(snapshot)), w.next.Number
	w.append(snapshot, revision, &result)
	w.next.Intact, w.next.Readable = w.next.Seq, w.next.Seq
	if w.restored != nil {
		w.next.RaiseOrigin(*w.restored)
	} else {
		w.openOutage(revision)
	}
	w.sweptTo(swept)
	w.publish()
	return result, nil
}

// resync commits the difference between the log and a snapshot.
func (w *Writer) resync(snapshot []Change, revision, swept uint64, result CommitResult) (CommitResult, error) {
	before := w.next.Revision
	if revision < before {
		return result, fmt.Errorf("%w: its snapshot is at %d, %d was served already", stream.ErrBehind, revision, before)
	}
	changes := make([]Change, 0, 16)
	present := make([]uint64, 0, len(snapshot)) // seqs of entries that are in the snapshot
	for i := range snapshot {
		c := &snapshot[i]
		_, s, e := w.lookup(storage.NewKey(c.Key))
		live := e != nil && !e.Is(storage.IsDelete)
		if live {
			present = append(present, e.Seq)
		}
		if live && e.Revision == c.Revision && w.framing.Repeats(s, e, &c.Resource) {
			continue
		}
		if c.Revision <= before {
			return result, fmt.Errorf("%w: key %.80q is at %d in its snapshot, which contradicts what was served up to %d",
				stream.ErrBehind, c.Key, c.Revision, before)
		}
		changes = append(changes, *c)
	}
	if w.account.Crowded(w.cost(changes)) {
		// The difference does not fit beside what is served. Subscribers then begin
		// again with the whole snapshot.
		return w.begin(w.next.Epoch, snapshot, revision, swept, result)
	}
	if err := w.account.Replace(w.snapshotCost(snapshot)); err != nil {
		return result, err
	}
	changes = append(changes, w.missing(present, revision)...)
	last := w.append(changes, revision, &result)
	last.ClearEndInOutage(revision, revision)
	if revision > before+1 || w.unnumbered {
		w.openOutage(revision)
	}
	w.sweptTo(swept)
	w.publish()
	return result, nil
}

// missing returns a delete for each live resource that is not present.
func (w *Writer) missing(present []uint64, revision uint64) []Change {
	var deletes []Change
	w.next.EachExcept(present, func(s *storage.Segment, e *storage.Entry) {
		deletes = append(deletes, Change{Resource: stream.Resource{Key: w.framing.Key(s, e), Revision: revision}, Deleted: true})
	})
	return deletes
}
