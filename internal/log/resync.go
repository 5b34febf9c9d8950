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
//
// What PrepareEarlier was given holds for this call.
func (w *Writer) Replace(epoch string, snapshot []stream.Resource, revision uint64) (CommitResult, error) {
	return w.ReplaceCompleteTo(epoch, snapshot, revision, stream.AllDeletes)
}

// ReplaceCompleteTo is Replace with what the source reported about deletes; see stream.SinkExtension.
func (w *Writer) ReplaceCompleteTo(epoch string, snapshot []stream.Resource, revision, deletesTo uint64) (CommitResult, error) {
	var result CommitResult
	defer func() { w.earlier = nil }()
	changes := make([]Change, len(snapshot))
	for i := range snapshot {
		changes[i].Resource = snapshot[i]
	}
	if err := Check(changes, revision); err != nil {
		return result, err
	}
	w.fromSnapshot = true
	defer func() { w.fromSnapshot, w.overlaps, w.conflated = false, true, false }()
	changes = w.order().Arrange(LastOfEachKey(changes))
	result.Duplicates = len(snapshot) - len(changes)
	epoch = stream.CanonicalEpoch(epoch)
	if epoch == w.next.Epoch {
		return w.resync(changes, revision, deletesTo, result)
	}
	return w.begin(epoch, changes, revision, deletesTo, result)
}

// begin builds a log from nothing but a snapshot.
func (w *Writer) begin(epoch string, snapshot []Change, revision, deletesTo uint64, result CommitResult) (CommitResult, error) {
	needs := w.snapshotCost(snapshot)
	crowded := w.account.Crowded(needs)
	if err := w.account.Replace(needs); err != nil {
		return result, err
	}
	deletes, after := w.earlier.before(snapshot, revision)
	if err := w.account.Grow(w.deletesCost(deletes)); err != nil {
		deletes, after = nil, revision // there is room for the snapshot alone
	}
	result.Reset = true
	if crowded {
		status := w.next.Status
		w.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: "making room for a new snapshot"})
		w.next.Status = status
	}
	w.restart(epoch)
	w.next.Source = w.source
	w.index, w.indexed = storage.NewIndex(len(snapshot)+len(deletes)), w.next.Number
	w.conflated = after < revision
	w.append(Order{}, merge(snapshot, deletes), revision, &result)
	w.next.Intact, w.next.Readable = w.next.Seq, w.next.Seq
	w.openOutage(after)
	w.deletesCompleteTo(deletesTo)
	w.publish()
	return result, nil
}

// resync commits the difference between the log and a snapshot.
func (w *Writer) resync(snapshot []Change, revision, deletesTo uint64, result CommitResult) (CommitResult, error) {
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
		return w.begin(w.next.Epoch, snapshot, revision, deletesTo, result)
	}
	if err := w.account.Replace(w.snapshotCost(snapshot)); err != nil {
		return result, err
	}
	w.next.Source = w.source
	deletes, after := w.deleted(snapshot, present, revision)
	order := w.order()
	w.conflated = after < revision
	last := w.append(order, order.Arrange(append(changes, deletes...)), revision, &result)
	last.ClearEndInOutage(revision, after)
	if after > before+1 || w.unnumbered {
		w.openOutage(after)
	}
	w.deletesCompleteTo(deletesTo)
	w.publish()
	return result, nil
}
