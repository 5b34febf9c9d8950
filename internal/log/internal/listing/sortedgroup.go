package listing

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/storage"
)

// sortedGroup is the resources of one revision in key order, for listings in which
// it spans several pages. It is cached since each page would otherwise have to sort
// it.
//
// All upserts of one revision are of one transaction, so the group never grows: a
// reader at a later seq finds the rest of it here.
//
// Static after construction.
type sortedGroup struct {
	generation, revision uint64
	seq                  uint64 // at which it was sorted
	seqs                 []uint64
	at                   time.Time
}

// LargeGroup is how many entries of one revision are examined and sorted for each
// page. For more, the order is cached.
const LargeGroup = 1024

// maxSortedGroups is how many are cached, newest first. Together they take less than
// the index of the log.
const maxSortedGroups = 4

// sortedGroups caches groups, the newest first. The zero value is empty. Any number of
// goroutines may use it.
type sortedGroups struct {
	cached atomic.Pointer[[]sortedGroup]
}

// get returns the group of a revision as of seq.
func (c *sortedGroups) get(v *storage.Version, f *storage.Format, seq, revision uint64) sortedGroup {
	before := c.cached.Load()
	if before != nil {
		for _, g := range *before {
			if g.generation == v.Generation && g.revision == revision && g.seq <= seq {
				return g
			}
		}
	}
	g := sortGroup(v, f, seq, revision)
	after := []sortedGroup{g}
	if before != nil {
		for _, other := range *before {
			if len(after) < maxSortedGroups && other.generation == v.Generation && other.revision != revision {
				after = append(after, other)
			}
		}
	}
	c.cached.CompareAndSwap(before, &after) // another goroutine's result is as good
	return g
}

func sortGroup(v *storage.Version, f *storage.Format, seq, revision uint64) sortedGroup {
	type member struct {
		key string
		seq uint64
	}
	var members []member
	for at := v.FromRevision(revision); at.Segment < len(v.Segments); at = v.Next(at) {
		s, e := v.Segments[at.Segment], v.Entry(at)
		if e.Revision != revision || e.Seq > seq {
			break
		}
		if !e.Is(storage.IsDelete) && e.Visible(seq) {
			members = append(members, member{f.Key(s, e), e.Seq})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	g := sortedGroup{generation: v.Generation, revision: revision, seq: seq, seqs: make([]uint64, len(members)), at: time.Now()}
	for i, m := range members {
		g.seqs[i] = m.seq
	}
	return g
}

// search returns where the keys begin for which found is true, as it is for all
// after them. Entries that the version no longer has are skipped.
func (g sortedGroup) search(v *storage.Version, f *storage.Format, found func(key string) bool) int {
	low, high := 0, len(g.seqs)
	for low < high {
		middle := low + (high-low)/2
		i := middle
		s, e := v.Find(g.seqs[i])
		for e == nil && i+1 < high {
			i++
			s, e = v.Find(g.seqs[i])
		}
		if e == nil || found(f.Key(s, e)) {
			high = middle
		} else {
			low = i + 1
		}
	}
	return low
}

// bytes is the memory of the cached groups.
func (c *sortedGroups) bytes() (bytes int64) {
	if groups := c.cached.Load(); groups != nil {
		for _, g := range *groups {
			bytes += 8 * int64(len(g.seqs))
		}
	}
	return bytes
}

// Expire releases groups that were sorted long ago.
func (c *sortedGroups) expire() {
	groups := c.cached.Load()
	if groups != nil && time.Since((*groups)[0].at) > sortedAge {
		c.cached.CompareAndSwap(groups, nil)
	}
}

// sortedAge is how long groups are cached after the newest of them was sorted.
const sortedAge = 10 * time.Minute
