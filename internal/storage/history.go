package storage

import (
	"iter"
	"sort"
	"time"
	"unsafe"
)

// Superseded is how many bytes were superseded recently, in a few stretches of commits: it can
// forget the oldest, and does not know single entries. The zero value is empty.
//
// Owned by the log's writer.
type Superseded struct {
	stretches []stretch // oldest first, at most most
	bytes     int64     // of all
}

// stretch is some consecutive commits.
type stretch struct {
	after uint64 // seq of the last entry before them
	began time.Time
	bytes int64 // that they superseded
}

// most is the most stretches that are distinguished.
const most = 32

// Add records that a commit at now superseded so many bytes; after is the seq of the last
// entry before it. Stretches are much shorter than maxAge.
func (r *Superseded) Add(after uint64, bytes int64, now time.Time, maxAge time.Duration) {
	if bytes == 0 {
		return
	}
	if r.endsStretch(now, maxAge) {
		r.begin(stretch{after: after, began: now})
	}
	r.stretches[len(r.stretches)-1].bytes += bytes
	r.bytes += bytes
}

// endsStretch reports whether the newest stretch is long enough.
func (r *Superseded) endsStretch(now time.Time, maxAge time.Duration) bool {
	n := len(r.stretches)
	if n == 0 {
		return true
	}
	newest := &r.stretches[n-1]
	return newest.bytes >= r.bytes/(most/2) || now.Sub(newest.began) >= maxAge/most
}

// begin begins a stretch. If there are too many, two become one.
func (r *Superseded) begin(s stretch) {
	if len(r.stretches) == most {
		r.join(r.smallestPair())
	}
	r.stretches = append(r.stretches, s)
}

// smallestPair is the index of the first of the two neighbors with the fewest bytes.
func (r *Superseded) smallestPair() (first int) {
	fewest := r.bytes
	for i := 1; i < len(r.stretches); i++ {
		if n := r.stretches[i-1].bytes + r.stretches[i].bytes; n < fewest {
			first, fewest = i-1, n
		}
	}
	return first
}

// join makes one stretch of the i-th and the next one.
func (r *Superseded) join(i int) {
	r.stretches[i].bytes += r.stretches[i+1].bytes
	r.stretches = append(r.stretches[:i+1], r.stretches[i+2:]...)
}

// Bytes is how many bytes were superseded after the mark.
func (r *Superseded) Bytes() int64 { return r.bytes }

// Mark is the seq after which everything superseded is recent: head, the newest seq, if
// nothing is.
func (r *Superseded) Mark(head uint64) uint64 {
	if len(r.stretches) == 0 {
		return head
	}
	return r.stretches[0].after
}

// Forget raises the mark by one stretch. There must be one.
func (r *Superseded) Forget() {
	r.bytes -= r.stretches[0].bytes
	r.stretches = r.stretches[:copy(r.stretches, r.stretches[1:])]
}

// ForgetBefore forgets the stretches that began before a time.
func (r *Superseded) ForgetBefore(t time.Time) {
	for len(r.stretches) > 0 && r.stretches[0].began.Before(t) {
		r.Forget()
	}
}

// Tombstone is a delete that is remembered for readers that resume.
type Tombstone struct {
	Seq uint64
	At  time.Time
}

// Tombstones has the deletes of a log, oldest first. Superseded ones (the key was created
// again) stay in it until they outnumber the others. The zero value is empty. Owned by
// the log's writer.
type Tombstones struct {
	all   []Tombstone
	first int // index in all; those before it were removed
}

// Push adds the newest tombstone.
func (q *Tombstones) Push(t Tombstone) { q.all = append(q.all, t) }

// Oldest returns the next tombstone to examine; false if there is none.
func (q *Tombstones) Oldest() (Tombstone, bool) {
	if q.first == len(q.all) {
		return Tombstone{}, false
	}
	return q.all[q.first], true
}

// Pop removes the oldest tombstone.
func (q *Tombstones) Pop() { q.first++ }

// Seqs returns the entries of the tombstones, oldest first.
func (q *Tombstones) Seqs() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, t := range q.all[q.first:] {
			if !yield(t.Seq) {
				return
			}
		}
	}
}

// Memory is how many bytes the queue takes.
func (q *Tombstones) Memory() int64 { return int64(cap(q.all)) * int64(unsafe.Sizeof(Tombstone{})) }

// compactFrom is the length up to which a queue is not worth compacting.
const compactFrom = 64

// Compact reduces the queue to the tombstones for which keep is true, of which there
// are live, if that halves it. So a queue takes no more than its tombstones need,
// and each push pays for moving at most one other.
func (q *Tombstones) Compact(live int, keep func(seq uint64) bool) {
	if len(q.all) <= 2*live+compactFrom {
		return
	}
	kept := make([]Tombstone, 0, live+live/4+compactFrom/2)
	for _, t := range q.all[q.first:] {
		if keep(t.Seq) {
			kept = append(kept, t)
		}
	}
	q.all, q.first = kept, 0
}

// mostTimes is the most times that are kept. When there are as many, the older half is forgotten.
const mostTimes = 1024

// Least and greatest distance of two times that are kept.
const (
	leastSpacing    = 25 * time.Millisecond
	greatestSpacing = time.Second
)

// CommitSpacing returns how far apart times have to be for a log that remembers for so long: a table
// that is full reaches at least half as far back, unless maxAge is long.
func CommitSpacing(maxAge time.Duration) time.Duration {
	return min(max(maxAge/mostTimes, leastSpacing), greatestSpacing)
}

// CommitTimes says when entries became visible. The zero value knows nothing.
//
// A value is immutable. Add belongs to the log's writer, which adds to the newest value only.
type CommitTimes []stretchOfTimes

// stretchOfTimes is some consecutive commits.
type stretchOfTimes struct {
	from uint64 // seq of the first entry
	at   int64  // of the first commit, in nanoseconds since 1970; 0: not known
}

// Add returns the times with those of the entries from a seq on, which became visible at a time,
// unless it is not known when they were made. A commit less than spacing after the last one that
// was kept counts to it.
func (t CommitTimes) Add(from uint64, at time.Time, known bool, spacing time.Duration) CommitTimes {
	one := stretchOfTimes{from: from}
	if known {
		one.at = at.UnixNano()
	}
	if n := len(t); n > 0 && t[n-1].includes(one, spacing) {
		return t
	}
	if len(t) == mostTimes {
		t = append(make(CommitTimes, 0, mostTimes), t[mostTimes/2:]...)
	}
	return append(t, one)
}

// includes reports whether a commit counts to the stretch.
func (s stretchOfTimes) includes(o stretchOfTimes, spacing time.Duration) bool {
	if s.at == 0 || o.at == 0 {
		return s.at == o.at
	}
	return o.at >= s.at && o.at-s.at < int64(spacing)
}

// Of returns when the entry with a seq became visible, or up to the spacing before.
func (t CommitTimes) Of(seq uint64) (at time.Time, known bool) {
	next := sort.Search(len(t), func(i int) bool { return t[i].from > seq })
	if next == 0 || t[next-1].at == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, t[next-1].at), true
}

// Bytes is the memory that the times hold.
func (t CommitTimes) Bytes() int64 { return int64(cap(t)) * int64(unsafe.Sizeof(stretchOfTimes{})) }
