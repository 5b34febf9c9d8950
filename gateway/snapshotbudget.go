package gateway

import (
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/metrics"
)

// snapshotBudget bounds the snapshot bytes in flight: those that are written but have
// not reached their clients. They are not copied, but each stream in a snapshot fills
// the kernel buffer of its connection and holds the version that it reads. The bound
// is therefore on how many streams read much at a time. Streams that must wait are
// served in the order in which they came. Those with a position, which need few
// bytes, go before those without, except for every fourth seat, so that both make
// progress.
//
// A seat is taken back from a stream that moves less than a flush in a second, if
// others wait: clients that stall must not hold up the queue until they time out.
// From then on such a stream queues with its kind, which gets every fourth seat: many
// trickling clients take that much from the others, but no more.
//
// All methods may be called from any goroutine. A seat's granted is called with the
// lock held.
type snapshotBudget struct {
	// Static after construction.
	size    int64
	metrics *metrics.Metrics

	mu      sync.Mutex // guards the following fields
	used    int64
	held    seatList
	resumes seatList // waiting, with a position
	wholes  seatList // waiting, without one
	slow    seatList // waiting, having lost their last seat
	passed  int      // how many with a position were let in before those without
	quick   int      // how many were let in before those that lost their last seat
	review  *time.Timer
}

const (
	// smallSnapshot is how much may be sent without a seat.
	smallSnapshot = 64 << 10
	// seatBytes is the most that one stream has in flight: see unsentBytes, and what
	// is written at once.
	seatBytes = 256 << 10
	// passBefore is how many with a position pass before one without.
	passBefore = 3
	// reviewEvery is how often it is checked which streams move.
	reviewEvery = time.Second
)

func newSnapshotBudget(size int64, m *metrics.Metrics) *snapshotBudget {
	return &snapshotBudget{size: size, metrics: m}
}

// ask gives p a seat for the given bytes, or queues it for one, on behalf of the
// given number of streams. It returns false if p waits. It may be called repeatedly.
func (b *snapshotBudget) ask(p *seat, streams int, bytes int64, whole bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.in != nil {
		return p.in == &b.held
	}
	p.streams, p.bytes, p.since = streams, min(bytes, b.size), time.Now()
	p.before = b.resumes.streams
	if whole || p.slow {
		p.before = b.waiting()
	}
	switch {
	case p.slow:
		b.slow.add(p)
	case p.group && p.passed:
		b.queue(whole).addFirst(p)
	default:
		b.queue(whole).add(p)
	}
	b.letIn()
	if p.in != &b.held {
		b.startReview()
	}
	return p.in == &b.held
}

// handOver gives the seat of one stream to another, which has none. It returns false
// if from no longer has one.
func (b *snapshotBudget) handOver(from, to *seat) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if from.in != &b.held {
		return false
	}
	b.held.remove(from)
	to.streams, to.bytes, to.since = 1, from.bytes, time.Now()
	b.held.add(to)
	return true
}

func (b *snapshotBudget) queue(whole bool) *seatList {
	if whole {
		return &b.wholes
	}
	return &b.resumes
}

func (b *snapshotBudget) waiting() int {
	return b.resumes.streams + b.wholes.streams + b.slow.streams
}

// leave gives the seat back, or leaves the queue.
func (b *snapshotBudget) leave(p *seat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.in == nil {
		return
	}
	b.takeBack(p)
	b.letIn()
}

func (b *snapshotBudget) takeBack(p *seat) {
	if p.in == &b.held {
		b.used -= p.bytes
	}
	p.in.remove(p)
}

// letIn gives seats to the streams whose turn it is, as long as there is room.
func (b *snapshotBudget) letIn() {
	for {
		from := b.nextQueue()
		p := from.first
		if p == nil || b.used > 0 && b.used+p.bytes > b.size {
			break
		}
		b.countPassed(from)
		from.remove(p)
		b.held.add(p)
		b.used += p.bytes
		b.metrics.WaitedForSnapshot(time.Since(p.since))
		p.since, p.passed = time.Now(), true
		p.granted()
	}
	b.metrics.SnapshotsNow(b.used, b.waiting())
}

// nextQueue returns the queue whose first seat is next.
func (b *snapshotBudget) nextQueue() *seatList {
	if from := b.nextQuick(); b.slow.first == nil || from.first != nil && b.quick < passBefore {
		return from
	}
	return &b.slow
}

func (b *snapshotBudget) nextQuick() *seatList {
	if b.resumes.first == nil || b.wholes.first != nil && b.passed >= passBefore {
		return &b.wholes
	}
	return &b.resumes
}

func (b *snapshotBudget) countPassed(from *seatList) {
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

// startReview schedules a review of the seats while a stream waits for one.
func (b *snapshotBudget) startReview() {
	if b.review == nil {
		b.review = time.AfterFunc(reviewEvery, b.takeBackIdle)
	}
}

// takeBackIdle takes back the seats of streams that did not move, and remembers that
// about them until they do.
func (b *snapshotBudget) takeBackIdle() {
	b.mu.Lock()
	defer b.mu.Unlock()
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
	b.letIn()
	if b.waiting() > 0 {
		b.startReview()
	}
}
