package limits

import (
	"sync/atomic"
	"time"
)

// SnapshotClaim is the state of one stream in the snapshot budget: it has a share of it, waits
// for one, or neither.
type SnapshotClaim struct {
	// Static after construction.
	Granted func() // called when the wait is over; must not block or use the budget
	group   bool   // it is requested for the members of a group, one after the other

	// Atomic.
	moved atomic.Bool // since the last review

	// Guarded by the budget.
	in         *claimList // nil: in none
	prev, next *SnapshotClaim
	bytes      int64
	streams    int       // number of streams that it represents while it waits
	since      time.Time // when its current state began
	passed     bool      // it had a lease before
	slow       bool      // it lost its last lease for lack of progress

	// Owned by the stream.
	before int // number of streams ahead of it when it was queued
}

// claimList is the list of leases, or one of the queues.
type claimList struct {
	first, last *SnapshotClaim
	streams     int
}

func (l *claimList) add(p *SnapshotClaim) {
	p.in, p.prev, p.next = l, l.last, nil
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.streams += p.streams
}

// addFirst adds the claim of a group whose first members have already passed: before
// the claims that came after the group's, and after those of other groups, so that
// groups take turns.
func (l *claimList) addFirst(p *SnapshotClaim) {
	next := l.first
	for next != nil && next.group {
		next = next.next
	}
	if next == nil {
		l.add(p)
		return
	}
	p.in, p.prev, p.next = l, next.prev, next
	if next.prev == nil {
		l.first = p
	} else {
		next.prev.next = p
	}
	next.prev = p
	l.streams += p.streams
}

func (l *claimList) remove(p *SnapshotClaim) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.in, p.prev, p.next = nil, nil, nil
	l.streams -= p.streams
}
