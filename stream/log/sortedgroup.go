package log

import (
	"cmp"
	"slices"
	"time"
)

// sortedGroup is the resources of one revision in key order, for listings in which
// it spans several pages. It is cached since each page would otherwise have to sort
// it.
//
// All upserts of one revision are of one transaction, so the group never grows: a
// reader at a later seq finds here what is left of it.
//
// Static after construction.
type sortedGroup struct {
	generation, revision uint64
	seq                  uint64 // at which it was sorted
	seqs                 []uint64
	at                   time.Time
}

// largeGroup is how many entries of one revision are examined and sorted for each
// page. For more, the order is cached.
const largeGroup = 1024

// maxSortedGroups is how many are cached, newest first. Together they take less than
// the index of the log.
const maxSortedGroups = 4

// sortedGroup returns the group of a revision as of seq.
func (l *Log) sortedGroup(v *version, seq, revision uint64) sortedGroup {
	before := l.sorted.Load()
	if before != nil {
		for _, g := range *before {
			if g.generation == v.generation && g.revision == revision && g.seq <= seq {
				return g
			}
		}
	}
	g := v.sortGroup(&l.framing, seq, revision)
	after := []sortedGroup{g}
	if before != nil {
		for _, other := range *before {
			if len(after) < maxSortedGroups && other.generation == v.generation && other.revision != revision {
				after = append(after, other)
			}
		}
	}
	l.sorted.CompareAndSwap(before, &after) // another goroutine's result is as good
	return g
}

func (v *version) sortGroup(f *framing, seq, revision uint64) sortedGroup {
	type member struct {
		key string
		seq uint64
	}
	var members []member
	for at := v.fromRevision(revision); at.segment < len(v.segments); at = v.next(at) {
		s, e := v.segments[at.segment], v.entry(at)
		if e.revision != revision || e.seq > seq {
			break
		}
		if !e.is(isDelete) && e.visible(seq) {
			members = append(members, member{f.key(s, e), e.seq})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	g := sortedGroup{generation: v.generation, revision: revision, seq: seq, seqs: make([]uint64, len(members)), at: time.Now()}
	for i, m := range members {
		g.seqs[i] = m.seq
	}
	return g
}

// search returns where the keys begin for which found is true, as it is for all
// after them. Entries that the version no longer has are skipped.
func (g sortedGroup) search(v *version, f *framing, found func(key string) bool) int {
	low, high := 0, len(g.seqs)
	for low < high {
		middle := low + (high-low)/2
		i := middle
		s, e := v.find(g.seqs[i])
		for e == nil && i+1 < high {
			i++
			s, e = v.find(g.seqs[i])
		}
		if e == nil || found(f.key(s, e)) {
			high = middle
		} else {
			low = i + 1
		}
	}
	return low
}

// sortedBytes is the memory of the cached groups.
func (l *Log) sortedBytes() (bytes int64) {
	if groups := l.sorted.Load(); groups != nil {
		for _, g := range *groups {
			bytes += 8 * int64(len(g.seqs))
		}
	}
	return bytes
}

// forgetSorted releases groups that were sorted long ago.
func (l *Log) forgetSorted() {
	groups := l.sorted.Load()
	if groups != nil && time.Since((*groups)[0].at) > sortedAge {
		l.sorted.CompareAndSwap(groups, nil)
	}
}

// sortedAge is how long groups are cached after the newest of them was sorted.
const sortedAge = 10 * time.Minute
