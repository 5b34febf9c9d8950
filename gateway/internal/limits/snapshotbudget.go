package limits

import (
	"sync"
	"time"
)

// SnapshotObserver is told how long streams waited for a snapshot, and of each change of the bytes on
// their way and of the number of streams that wait.
type SnapshotObserver interface {
	WaitedForSnapshot(time.Duration)
	SnapshotsNow(used int64, waiting int)
}

// SnapshotBudget bounds the snapshot bytes in flight: those that are written but have not
// reached their clients. They are not copied, but each stream in a snapshot fills the
// kernel buffer of its connection and holds the version that it reads. The bound is
// therefore on how many streams read a large amount at a time. Streams that must wait
// are served in the order in which they came. Those with a position, which need few
// bytes, go before those without, except for every fourth lease, so that both make
// progress.
//
// A lease is taken back from a stream that sends less than a flush in a second, if
// others wait: clients that stall must not hold up the queue until they time out. From
// then on such a stream queues with its kind, which gets every fourth lease: many slow
// clients take that share from the others, but no more.
//
// All methods may be called from any goroutine. A lease's granted is called with the
// lock held.
type SnapshotBudget struct {
	// Static after construction.
	observer SnapshotObserver

	Mu      sync.Mutex // guards the following fields
	Size    int64
	Used    int64
	held    claimList
	resumes claimList // waiting, with a position
	wholes  claimList // waiting, without one
	slow    claimList // waiting, having lost their last lease
	passed  int       // leases granted with a position since the last one without
	quick   int       // leases granted since the last one to a stream that had lost its own
	review  *time.Timer
}

const (
	// smallSnapshot is how much may be sent without a lease.
	smallSnapshot = 64 << 10
	// claimBytes is the most that one stream has in flight: see unsentBytes, and what
	// is written at once.
	claimBytes = 256 << 10
	// passBefore is how many with a position pass before one without.
	passBefore = 3
	// reviewEvery is the interval at which the progress of streams is checked.
	reviewEvery = time.Second
)

// NewSnapshotBudget returns a budget for size bytes of snapshots on their way.
func NewSnapshotBudget(size int64, o SnapshotObserver) *SnapshotBudget {
	return &SnapshotBudget{Size: size, observer: o}
}

// Resize changes how many bytes may be in flight. Leases that were granted stay.
func (b *SnapshotBudget) Resize(size int64) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.Size = size
	b.grantWaiting()
}

// Ask gives p a lease for the given bytes, or queues it for one, on behalf of the
// given number of streams. It returns false if p waits. It may be called repeatedly.
func (b *SnapshotBudget) Ask(p *SnapshotClaim, streams int, bytes int64, whole bool) bool {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if p.in != nil {
		return p.in == &b.held
	}
	p.streams, p.bytes, p.since = streams, min(bytes, b.Size), time.Now()
	p.before = b.resumes.streams
	if whole || p.slow {
		p.before = b.Waiting()
	}
	switch {
	case p.slow:
		b.slow.add(p)
	case p.group && p.passed:
		b.queue(whole).addFirst(p)
	default:
		b.queue(whole).add(p)
	}
	b.grantWaiting()
	if p.in != &b.held {
		b.startReview()
	}
	return p.in == &b.held
}

// handOver gives the lease of one stream to another, which has none. It returns false
// if from no longer has one.
func (b *SnapshotBudget) handOver(from, to *SnapshotClaim) bool {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if from.in != &b.held {
		return false
	}
	b.held.remove(from)
	to.streams, to.bytes, to.since = 1, from.bytes, time.Now()
	b.held.add(to)
	return true
}

func (b *SnapshotBudget) queue(whole bool) *claimList {
	if whole {
		return &b.wholes
	}
	return &b.resumes
}

// Waiting returns how many streams wait for a lease. The caller holds Mu.
func (b *SnapshotBudget) Waiting() int {
	return b.resumes.streams + b.wholes.streams + b.slow.streams
}

// Now returns the number of bytes that are on their way and the number of streams that wait.
func (b *SnapshotBudget) Now() (used int64, waiting int) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Used, b.Waiting()
}

// Release frees a share, or leaves the queue.
func (b *SnapshotBudget) Release(p *SnapshotClaim) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if p.in == nil {
		return
	}
	b.takeBack(p)
	b.grantWaiting()
}

func (b *SnapshotBudget) takeBack(p *SnapshotClaim) {
	if p.in == &b.held {
		b.Used -= p.bytes
	}
	p.in.remove(p)
}

// grantWaiting gives leases to the streams whose turn it is, as long as there
// is room.
func (b *SnapshotBudget) grantWaiting() {
	for {
		from := b.nextQueue()
		p := from.first
		if p == nil || b.Used > 0 && b.Used+p.bytes > b.Size {
			break
		}
		b.countPassed(from)
		from.remove(p)
		b.held.add(p)
		b.Used += p.bytes
		b.observer.WaitedForSnapshot(time.Since(p.since))
		p.since, p.passed = time.Now(), true
		p.Granted()
	}
	b.observer.SnapshotsNow(b.Used, b.Waiting())
}

// nextQueue returns the queue whose first lease is next.
func (b *SnapshotBudget) nextQueue() *claimList {
	if from := b.nextQuick(); b.slow.first == nil || from.first != nil && b.quick < passBefore {
		return from
	}
	return &b.slow
}

func (b *SnapshotBudget) nextQuick() *claimList {
	if b.resumes.first == nil || b.wholes.first != nil && b.passed >= passBefore {
		return &b.wholes
	}
	return &b.resumes
}

func (b *SnapshotBudget) countPassed(from *claimList) {
	if b.quick++; from == &b.slow || b.slow.first == nil {
		b.quick = 0
	}
	if from == &b.slow {
		return
	}
	if b.passed++; from == &b.wholes || b.wholes.first == nil {
		b.passed = 0
	}
}

// startReview schedules a review of the leases while a stream waits for one.
func (b *SnapshotBudget) startReview() {
	if b.review == nil {
		b.review = time.AfterFunc(reviewEvery, b.takeBackIdle)
	}
}

// takeBackIdle takes back the leases of streams without progress, and marks those
// streams until they progress.
func (b *SnapshotBudget) takeBackIdle() {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	b.review = nil
	for p := b.held.first; p != nil; {
		next := p.next
		switch moved := p.moved.Swap(false); {
		case moved:
			p.slow = false
		case time.Since(p.since) >= reviewEvery:
			p.slow = true
			b.takeBack(p)
		}
		p = next
	}
	b.grantWaiting()
	if b.Waiting() > 0 {
		b.startReview()
	}
}
