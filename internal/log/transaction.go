package log

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

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
