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
func (t *Lease) CallWhenGranted(call func()) { t.call = call }

// IsMuch reports whether the pending amount is large enough to need a lease.
func IsMuch(sub *log.Subscription) bool {
	bytes, _ := sub.Pending(smallSnapshot)
	return bytes >= smallSnapshot
}

// Check is called before each Next, and decides whether it may read. It reports
// whether a lease is needed.
func (t *Lease) Check(sub *log.Subscription) bool {
	if !IsMuch(sub) {
		sub.Release()
		return false
	}
	if t.ask(1, sub) {
		sub.Release()
		return true
	}
	sub.Hold(t.Reason())
	return true
}

// Reason returns the reason in the status of a stream that waits.
func (t *Lease) Reason() string {
	return fmt.Sprintf("the snapshot waits for its turn; about %d are before it", t.claim.before)
}

func (t *Lease) ask(streams int, sub *log.Subscription) bool {
	if t.claim == nil {
		t.claim = t.newClaim()
	}
	t.asked = true
	bytes, whole := sub.Pending(claimBytes)
	return t.budget.Ask(t.claim, streams, int64(bytes), whole)
}

func (t *Lease) newClaim() *SnapshotClaim {
	if t.call != nil {
		return &SnapshotClaim{Granted: t.call}
	}
	granted := make(chan struct{}, 1)
	t.Granted = granted
	return &SnapshotClaim{Granted: func() {
		select {
		case granted <- struct{}{}:
		default:
		}
	}}
}

// Moved records that the client has received the bytes sent before.
func (t *Lease) Moved() {
	if t.asked {
		t.claim.moved.Store(true)
	}
}

// PassTo passes the share on to the lease of another stream, if there still is one.
func (t *Lease) PassTo(other *Lease) {
	if !t.asked {
		return
	}
	t.asked = false
	other.claim = other.newClaim()
	if other.asked = t.budget.handOver(t.claim, other.claim); !other.asked {
		t.budget.Release(t.claim)
	}
}

// Detach moves the share that the lease holds, or waits for, to a new lease.
func (t *Lease) Detach() Lease {
	held := *t
	t.asked = false
	return held
}

// Asks reports whether a share is held or waited for.
func (t *Lease) Asks() bool { return t.asked }

// Release frees the share, or leaves the queue.
func (t *Lease) Release() {
	if t.asked {
		t.asked = false
		t.budget.Release(t.claim)
	}
}

// ForMembers returns a lease for the members of a group, one after the other. call
// ends the wait of one of them.
func (t *Lease) ForMembers(call func()) Lease { return Lease{budget: t.budget, call: call} }

// AskForMember asks for a share on behalf of one of the members of a group.
func (t *Lease) AskForMember(members int, sub *log.Subscription) bool {
	if t.claim == nil {
		t.claim = t.newClaim()
		t.claim.group = true
	}
	return t.ask(members, sub)
}

// Came reports whether a share was ever asked for.
func (t *Lease) Came() bool { return t.claim != nil }
