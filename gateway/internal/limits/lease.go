package limits

import (
	"fmt"

	"github.com/watchtide/watchtide/internal/log"
)

// Lease lets one stream read a large amount only while it has a share of the
// snapshot budget.
//
// Owned by its pump.
type Lease struct {
	// Static after construction.
	budget *SnapshotBudget
	call   func() // ends the wait; nil: granted does

	claim   *SnapshotClaim
	asked   bool            // lease is in use
	Granted <-chan struct{} // ends the wait
}

// NewLease returns a lease of a share of b.
func NewLease(b *SnapshotBudget) Lease { return Lease{budget: b} }

// CallWhenGranted makes call end the wait, instead of granted. It must not block.
func (l *Lease) CallWhenGranted(call func()) { l.call = call }

// IsMuch reports whether the pending amount is large enough to need a lease.
func IsMuch(sub *log.Subscription) bool {
	bytes, _ := sub.Pending(smallSnapshot)
	return bytes >= smallSnapshot
}

// Check is called before each Next, and decides whether it may read. It reports
// whether a lease is needed.
func (l *Lease) Check(sub *log.Subscription) bool {
	if !IsMuch(sub) {
		sub.Unpause()
		return false
	}
	if l.ask(1, sub) {
		sub.Unpause()
		return true
	}
	sub.Pause(l.Reason())
	return true
}

// Reason returns the reason in the status of a stream that waits.
func (l *Lease) Reason() string {
	return fmt.Sprintf("the snapshot waits for its turn; about %d are before it", l.claim.before)
}

func (l *Lease) ask(streams int, sub *log.Subscription) bool {
	if l.claim == nil {
		l.claim = l.newClaim()
	}
	l.asked = true
	bytes, whole := sub.Pending(claimBytes)
	return l.budget.Ask(l.claim, streams, int64(bytes), whole)
}

func (l *Lease) newClaim() *SnapshotClaim {
	if l.call != nil {
		return &SnapshotClaim{Granted: l.call}
	}
	granted := make(chan struct{}, 1)
	l.Granted = granted
	return &SnapshotClaim{Granted: func() {
		select {
		case granted <- struct{}{}:
		default:
		}
	}}
}

// Moved records that the client has received the bytes sent before.
func (l *Lease) Moved() {
	if l.asked {
		l.claim.moved.Store(true)
	}
}

// PassTo passes the share on to the lease of another stream, if there still is one.
func (l *Lease) PassTo(other *Lease) {
	if !l.asked {
		return
	}
	l.asked = false
	other.claim = other.newClaim()
	if other.asked = l.budget.handOver(l.claim, other.claim); !other.asked {
		l.budget.Release(l.claim)
	}
}

// Detach moves the share that the lease holds, or waits for, to a new lease.
func (l *Lease) Detach() Lease {
	held := *l
	l.asked = false
	return held
}

// Asks reports whether a share is held or waited for.
func (l *Lease) Asks() bool { return l.asked }

// Release frees the share, or leaves the queue.
func (l *Lease) Release() {
	if l.asked {
		l.asked = false
		l.budget.Release(l.claim)
	}
}

// ForMembers returns a lease for the members of a group, one after the other. call
// ends the wait of one of them.
func (l *Lease) ForMembers(call func()) Lease { return Lease{budget: l.budget, call: call} }

// AskForMember asks for a share on behalf of one of the members of a group.
func (l *Lease) AskForMember(members int, sub *log.Subscription) bool {
	if l.claim == nil {
		l.claim = l.newClaim()
		l.claim.group = true
	}
	return l.ask(members, sub)
}

// Came reports whether a share was ever asked for.
func (l *Lease) Came() bool { return l.claim != nil }
