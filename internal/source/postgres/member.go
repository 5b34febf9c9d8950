package postgres

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/watchtide/watchtide/stream"
)

// member is one running Watch call.
type member struct {
	table Table                   // static after construction
	end   context.CancelCauseFunc // ends the call
	queue *queue

	// safe is the place up to which the watch needs nothing again, of a definition of the table that was
	// looked at; 0: it has nothing. Atomic.
	safe atomic.Uint64

	late bool // it joined in the middle of a transaction, which it does not get; guarded by upstream.mu
}

// event is what a member gets of the stream.
type event struct {
	transaction
	commit   bool // the transaction is complete; otherwise it is a change
	progress bool // nothing of the watch has changed up to there

	id       uint32
	relation *relation // never modified
	message  []byte    // of the change; never modified
}

// size is how many bytes an event takes.
func (e *event) size() int64 { return int64(len(e.message)) + 160 }

const (
	// crowdedAt is how many bytes may wait for a watch that is up to date, before the stream waits.
	crowdedAt = 4 << 20
	// maxWaiting is how many bytes may wait while the table of the watch is read.
	maxWaiting = 1 << 30
)

// queue has the events that a member has not handled. All its methods may be called from any goroutine.
type queue struct {
	// Static after construction.
	sink     stream.Sink
	overflow func()        // is called when too much waits
	arrived  chan struct{} // has an element if there may be events
	room     chan struct{} // has an element if there may be room

	mu     sync.Mutex // guards the following fields
	events []event
	bytes  int64 // of those that are not handled, also if they were taken
	live   bool  // the watch is up to date
	closed bool
}

func newQueue(sink stream.Sink, overflow func()) *queue {
	return &queue{sink: sink, overflow: overflow, arrived: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds an event.
func (q *queue) push(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if last := len(q.events) - 1; e.progress && last >= 0 && q.events[last].progress {
		q.events[last] = e
		return
	}
	q.events = append(q.events, e)
	q.bytes += e.size()
	q.sink.Charge(e.size())
	if q.bytes > maxWaiting {
		q.overflow()
	}
	wake(q.arrived)
}

// wake tells a goroutine that waits that something may have changed.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take returns the events that wait, in their order.
func (q *queue) take() []event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events = nil
	return events
}

// handled says that an event needs no memory any longer.
func (q *queue) handled(e *event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.bytes -= e.size()
	q.sink.Charge(-e.size())
	if q.bytes <= crowdedAt {
		wake(q.room)
	}
}

// crowded reports whether the stream has to wait for the member.
func (q *queue) crowded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.live && !q.closed && q.bytes > crowdedAt
}

// setLive records that the watch is up to date, except for what waits.
func (q *queue) setLive() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.live = true
}

// close ends the queue: nothing is added any longer, and nothing charged.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.sink.Charge(-q.bytes)
	}
	q.closed, q.events = true, nil
	wake(q.room)
}
