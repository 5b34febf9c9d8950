package gateway

import (
	"time"

	"github.com/watchtide/watchtide/stream"
)

// dissolve lets the members of a group go on by themselves: what comes next is much,
// a snapshot, say, and each takes it at a pace of its own. They leave as they get
// their seats; until then they stay, and cost no more than before.
func (s *shard) dissolve(g *group, now time.Time) (busy bool) {
	if !g.dissolves {
		g.dissolves = true
		delete(s.named, g.key) // those who are through found another
		g.ticket.leave()       // one that it may have asked for as a single stream would
		g.ticket = ticket{budget: g.ticket.budget, call: func() { s.callGroup(g) }}
	}
	for n := 0; len(g.members) > 0; n++ {
		if n == passMembers || len(s.ready) >= passMembers {
			busy = true // the others first
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

// release lets one member go, with the seat that its group got for it.
func (s *shard) release(g *group) {
	seat, asked := g.ticket.seat, g.ticket.asked
	g.ticket.asked = false
	defer func() {
		if asked {
			s.g.snapshots.leave(seat) // nobody took it over
		}
	}()
	l := s.secede(g.members[len(g.members)-1])
	if asked {
		l.ticket.take(seat)
		asked = false
	}
}

// mayGo says whether one of the members can go on by itself now.
func (g *group) mayGo() bool {
	sub := g.needy()
	if sub == nil {
		g.ticket.leave()
		return true
	}
	if g.ticket.seat == nil {
		g.ticket.seat = g.ticket.newSeat()
		g.ticket.seat.group = true
	}
	return g.ticket.ask(len(g.members), sub)
}

// needy is a subscription for which a seat is needed; nil: there is none.
func (g *group) needy() *stream.Subscription {
	for i := range g.follows {
		if sub := g.follows[i].sub; isMuch(sub) {
			return sub
		}
	}
	return nil
}

// wait keeps up with those who wait for their turn; false: not with everything,
// since the members are too far behind.
func (g *group) wait(now time.Time) (all bool) {
	if len(g.buffer) >= groupFull {
		return false
	}
	if g.ticket.seat != nil { // else it did not come to ask yet
		g.goOn()
	}
	g.publish(now)
	return true
}

// goOn tells those who wait why nothing comes, and goes on with the watches that do
// not.
func (g *group) goOn() {
	for i := range g.follows {
		f := &g.follows[i]
		if isMuch(f.sub) {
			f.sub.Hold(g.ticket.reason())
		}
		for f.sub.Held() && f.sub.Next(&g.batch) {
			g.say(f, g)
		}
		for !f.sub.Held() && !isMuch(f.sub) && g.turnOf(i, g) {
		}
	}
}
