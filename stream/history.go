package stream

import (
	"time"
	"unsafe"
)

// tombstone is a delete that is remembered for readers that resume.
type tombstone struct {
	seq uint64
	at  time.Time
}

// tombstones are the deletes of a log, oldest first: those that were superseded
// since (the key was created again) are still in the queue, and are skipped when
// their turn comes. Owned by the log's writer.
type tombstones struct {
	queue []tombstone
	bytes int64 // frames of those that were not superseded
}

func (t *tombstones) push(d tombstone) { t.queue = append(t.queue, d) }

func (t *tombstones) pop() { t.queue = t.queue[1:] }

func (t *tombstones) memory() int64 {
	return int64(cap(t.queue)) * int64(unsafe.Sizeof(tombstone{}))
}

// forget drops the deletes that are beyond the history, as part of the commit
// under way: readers at it and after it do not see them any more, readers before
// it still do. A reader that has not seen them can no more resume: the horizon
// rises.
func (l *Log) forget(now time.Time) {
	oldest := now.Add(-l.history.MaxAge)
	for len(l.deletes.queue) > 0 {
		t := l.deletes.queue[0]
		s, e := l.next.find(t.seq)
		if e == nil || e.superseded.Load() != 0 {
			l.deletes.pop()
			continue
		}
		within := l.next.tombstones <= l.history.MaxDeletes &&
			l.deletes.bytes <= l.history.MaxBytes && !t.at.Before(oldest)
		if within || t.seq == l.next.seq {
			return
		}
		l.deletes.pop()
		l.drop(s, e, t.at)
	}
}

func (l *Log) drop(s *segment, e *entry, at time.Time) {
	slot := l.index.probe(e.hash, func(seq uint64) bool { return seq == e.seq })
	l.index.drop(slot, e.hash)
	l.supersede(s, e, l.next.seq)
	l.next.forgotten = max(l.next.forgotten, e.seq)
	horizon := e.revision
	if e.is(isBorrowed) {
		// A reader at this very revision may or may not have seen it.
		horizon++
	}
	if horizon > l.next.horizon {
		l.next.horizon, l.next.horizonAge = horizon, at
	}
}
