package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/internal/log"
)

// splitForSnapshot lets the members of a group continue on their own: a large amount
// follows, such as a snapshot, which each reads at its own pace. A member is detached
// when it gets its lease; until then it costs no more than before.
func (s *shard) splitForSnapshot(g *group, now time.Time) (busy bool) {
	if !g.splits {
		g.splits = true
		delete(s.named, g.key) // members that have passed form another group
		g.Lease.Release()      // it may have asked for a lease, as a single stream would
		g.Lease = g.Lease.ForMembers(func() { s.callGroup(g) })
	}
	for n := 0; len(g.members) > 0; n++ {
		if n == passMembers || len(s.ready) >= passMembers {
			busy = true // let the others go first
			break
		}
		if !g.mayGo() {
			break
		}
		s.release(g)
	}
	if len(g.members) == 0 {
		return true
	}
	all := g.wait(now)
	s.pass(g)
	return busy || !all || g.behind > 0
}

// release detaches one member, with the lease that its group got for it.
func (s *shard) release(g *group) {
	held := g.Lease.Detach() // the group may end with its last member
	defer held.Release()
	l := s.detachMember(g.members[len(g.members)-1])
	held.PassTo(&l.Lease)
}

// mayGo reports whether one of the members can continue on its own now.
func (g *group) mayGo() bool {
	sub := g.needy()
	if sub == nil {
		g.Lease.Release()
		return true
	}
	return g.Lease.AskForMember(len(g.members), sub)
}

// needy returns a subscription that needs a lease, or nil if there is none.
func (g *group) needy() *log.Subscription {
	for i := range g.Follows {
		if sub := g.Follows[i].Sub; limits.IsMuch(sub) {
			return sub
		}
	}
	return nil
}

// wait serves the members that wait for their turn. It returns false if it could
// not render everything, since the members are too far behind.
func (g *group) wait(now time.Time) (all bool) {
	if len(g.buffer) >= groupFull {
		return false
	}
	if g.Lease.Came() { // else it has not come to ask yet
		g.goOn()
	}
	g.publish(now)
	return true
}

// goOn sends the waiting members the reason of the wait, and continues with the
// watches that need not wait.
func (g *group) goOn() {
	for i := range g.Follows {
		f := &g.Follows[i]
		if limits.IsMuch(f.Sub) {
			f.Sub.Pause(g.Lease.Reason())
		}
		for f.Sub.Paused() && f.Sub.Next(&g.Batch) {
			g.WriteBatch(f, g.encoder)
		}
		for !f.Sub.Paused() && !limits.IsMuch(f.Sub) && g.TurnOf(i, g.encoder) {
		}
	}
}
