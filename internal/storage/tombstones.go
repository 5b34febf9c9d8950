package storage

import (
	"iter"
	"time"
	"unsafe"
)

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
