package stream

import (
	"cmp"
	"fmt"
	"slices"
)

// Change is one resource of a transaction, or of a snapshot.
type Change struct {
	Resource
	// Deleted: the resource is gone; of it only Key and Revision count.
	Deleted bool

	// inferred: it was missing in a snapshot. When it was deleted is not known.
	inferred bool
}

// CommitResult says what became of the changes of a commit.
type CommitResult struct {
	Upserts, Deletes int
	// Duplicates were known already and dropped.
	Duplicates int
	// Reset says that subscribers were given a new revision order.
	Reset bool
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
	return byRevision(changes), revision, nil
}

// byRevision returns the changes by rising revision; those of one revision stay in
// their order. Places are sorted and not the changes, which are large: a snapshot
// may have many, in any order.
func byRevision(changes []Change) []Change {
	type ranked struct {
		revision uint64
		at       int
	}
	order := make([]ranked, len(changes))
	for i := range changes {
		order[i] = ranked{changes[i].Revision, i}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(a.at, b.at))
	})
	sorted := make([]Change, len(changes))
	for i, p := range order {
		sorted[i] = changes[p.at]
	}
	return sorted
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
