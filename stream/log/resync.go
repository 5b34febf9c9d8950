package log

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Replace takes a complete snapshot, in any order, which contains every resource up
// to revision.
//
// The first one, and one in another revision order (epoch), begins a new generation:
// subscribers get reset. Otherwise the snapshot ends an outage: a resource with an
// unchanged revision is dropped, a missing one becomes a delete at revision, and all
// of it becomes visible as one transaction.
//
// A snapshot that is older than what the log has, as a whole or in a single key,
// is refused with ErrBehind: taking it would go back in time. One that holds a
// resource newer than revision is ErrInvalid, and one that does not fit into the
// memory of the watch is memory.ErrExceeded. Nothing is changed then.
func (l *Log) Replace(epoch string, snapshot []stream.Resource, revision uint64) (CommitResult, error) {
	return l.ReplaceSwept(epoch, snapshot, revision, stream.AllSwept)
}

// ReplaceSwept is Replace with what the source reported about deletes; see Swept.
func (l *Log) ReplaceSwept(epoch string, snapshot []stream.Resource, revision, swept uint64) (CommitResult, error) {
	var result CommitResult
	changes := make([]Change, len(snapshot))
	for i := range snapshot {
		changes[i].Resource = snapshot[i]
	}
	if err := check(changes, revision); err != nil {
		return result, err
	}
	changes = l.place().inOrder(foldKeys(changes))
	result.Duplicates = len(snapshot) - len(changes)
	epoch = stream.CanonicalEpoch(epoch)
	if epoch == l.next.epoch {
		return l.resync(changes, revision, swept, result)
	}
	return l.begin(epoch, changes, revision, swept, result)
}

// begin builds a log from nothing but a snapshot.
func (l *Log) begin(epoch string, snapshot []Change, revision, swept uint64, result CommitResult) (CommitResult, error) {
	needs := l.snapshotCost(snapshot)
	crowded := l.account.Crowded(needs)
	if err := l.account.Replace(needs); err != nil {
		return result, err
	}
	result.Reset = true
	if crowded {
		status := l.next.status
		l.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: "making room for a new snapshot"})
		l.next.status = status
	}
	l.restart(epoch)
	l.index, l.indexed = newIndex(len(snapshot)), l.next.number
	l.append(snapshot, revision, &result)
	l.next.intact, l.next.readable = l.next.seq, l.next.seq
	l.openOutage(revision)
	l.sweptTo(swept)
	l.publish()
	return result, nil
}

// resync commits the difference between the log and a snapshot.
func (l *Log) resync(snapshot []Change, revision, swept uint64, result CommitResult) (CommitResult, error) {
	before := l.next.revision
	if revision < before {
		return result, fmt.Errorf("%w: its snapshot is at %d, %d was served already", stream.ErrBehind, revision, before)
	}
	changes := make([]Change, 0, 16)
	present := make([]uint64, 0, len(snapshot)) // seqs of entries that are in the snapshot
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
				stream.ErrBehind, c.Key, c.Revision, before)
		}
		changes = append(changes, *c)
	}
	if l.account.Crowded(l.cost(changes)) {
		// The difference does not fit beside what is served. Subscribers then begin
		// again with the whole snapshot.
		return l.begin(l.next.epoch, snapshot, revision, swept, result)
	}
	if err := l.account.Replace(l.snapshotCost(snapshot)); err != nil {
		return result, err
	}
	changes = append(changes, l.missing(present, revision)...)
	last := l.append(changes, revision, &result)
	noEndWithin(last, revision, revision)
	if revision > before+1 || l.unnumbered {
		l.openOutage(revision)
	}
	l.sweptTo(swept)
	l.publish()
	return result, nil
}

// missing returns a delete for each live resource that is not present.
func (l *Log) missing(present []uint64, revision uint64) []Change {
	var deletes []Change
	slices.Sort(present)
	l.next.each(l.next.seq, func(s *segment, e *entry) bool {
		if len(present) > 0 && present[0] == e.seq {
			present = present[1:]
			return true
		}
		deletes = append(deletes, Change{
			Resource: stream.Resource{Key: l.framing.key(s, e), Revision: revision}, Deleted: true,
		})
		return true
	})
	return deletes
}
