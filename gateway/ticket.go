package gateway

import (
	"fmt"

	"github.com/watchtide/watchtide/stream/log"
)

// ticket lets one stream read much only while it has a seat in the snapshot budget.
//
// Owned by its pump.
type ticket struct {
	// Static after construction.
	budget *snapshotBudget
	call   func() // ends the wait; nil: granted does

	seat    *seat
	asked   bool            // seat is in use
	granted <-chan struct{} // ends the wait
}

// isMuch reports whether so much is pending that a seat is needed.
func isMuch(sub *log.Subscription) bool {
	bytes, _ := sub.Pending(smallSnapshot)
	return bytes >= smallSnapshot
}

// check is called before each Next, and decides whether it may read. It reports
// whether a seat is needed.
func (t *ticket) check(sub *log.Subscription) bool {
	if !isMuch(sub) {
		sub.Release()
		return false
	}
	if t.ask(1, sub) {
		sub.Release()
		return true
	}
	sub.Hold(t.reason())
	return true
}

// reason returns the text for clients that wait.
func (t *ticket) reason() string {
	return fmt.Sprintf("the snapshot waits for its turn; about %d are before it", t.seat.before)
}

func (t *ticket) ask(streams int, sub *log.Subscription) bool {
	if t.seat == nil {
		t.seat = t.newSeat()
	}
	t.asked = true
	bytes, whole := sub.Pending(seatBytes)
	return t.budget.ask(t.seat, streams, int64(bytes), whole)
}

func (t *ticket) newSeat() *seat {
	if t.call != nil {
		return &seat{granted: t.call}
	}
	granted := make(chan struct{}, 1)
	t.granted = granted
	return &seat{granted: func() {
		select {
		case granted <- struct{}{}:
		default:
		}
	}}
}

// moved records that the client took what it was sent before.
func (t *ticket) moved() {
	if t.asked {
		t.seat.moved.Store(true)
	}
}

// take takes over the seat of another ticket, if it still has one.
func (t *ticket) take(from *seat) {
	t.seat = t.newSeat()
	t.asked = t.budget.handOver(from, t.seat)
}

// leave gives the seat back, or leaves the queue.
func (t *ticket) leave() {
	if t.asked {
		t.asked = false
		t.budget.leave(t.seat)
	}
}
