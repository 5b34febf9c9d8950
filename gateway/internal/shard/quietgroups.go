package shard

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

// quietGroups determines which groups of a shard must be checked without news,
// since a heartbeat or the changes of a tick may be due. Only that check finds out whether news has
// already made it unnecessary, so that news costs nothing here.
//
// There may be a group for each of thousands of views. When the heartbeat of one is due, those
// that are due soon are sent in the same round: a write that directly follows another one costs
// the kernel half as much. From then on they are due together.
//
// Owned by one shard.
type quietGroups struct {
	heap  groupHeap
	round bool // a round is under way
}

// put adds a group, or records that it was served.
func (q *quietGroups) put(g *group) {
	if at := introspection.Nanos(g.lookAt()); g.looked == 0 || at < g.looked {
		g.looked = at
		q.heap.push(quietGroup{at, g})
	}
}

// due calls f for the groups that must be checked now. After passMembers groups it stops in the
// middle of the round, so that other work gets its turn.
func (q *quietGroups) due(now time.Time, f func(*group)) {
	for range passMembers {
		if len(q.heap) == 0 {
			break
		}
		first, until := q.heap[0], introspection.Nanos(now)
		g := first.of
		if q.round {
			until += int64(g.early())
		}
		if first.at > until {
			break
		}
		q.heap.pop()
		if g.looked != first.at {
			continue // it was removed, or put again
		}
		g.looked = 0
		switch {
		case introspection.Nanos(g.lookAt()) > until:
			q.put(g)
			continue
		case introspection.Nanos(g.HeartbeatAt()) <= until:
			q.round, g.beats = true, true
		}
		f(g)
	}
	q.round = q.round && q.goesOn(now)
}

// goesOn reports whether a round has been interrupted, and has more groups.
func (q *quietGroups) goesOn(now time.Time) bool {
	return len(q.heap) > 0 && q.heap[0].at <= introspection.Nanos(now)+int64(q.heap[0].of.early())
}

// quietTick is how late a group may be checked, so that many are checked at one time: there
// may be one for each of thousands of views.
const quietTick = 100 * time.Millisecond

// next returns when a group must be checked; zero: never.
func (q *quietGroups) next() time.Time {
	if len(q.heap) == 0 {
		return time.Time{}
	}
	return introspection.FromNanos((q.heap[0].at + int64(quietTick) - 1) / int64(quietTick) * int64(quietTick))
}

// remove removes a group.
func (q *quietGroups) remove(g *group) { g.looked = 0 }

// quietGroup is a group that must be checked, unless it was removed or put again since.
type quietGroup struct {
	at int64 // see group.looked
	of *group
}

// groupHeap has the group that must be checked first in front. It reads nothing of the
// groups: of very many, none is in the processor's cache.
type groupHeap []quietGroup

func (h *groupHeap) push(last quietGroup) {
	all := append(*h, last)
	i := len(all) - 1
	for ; i > 0 && all[(i-1)/2].at > last.at; i = (i - 1) / 2 {
		all[i] = all[(i-1)/2]
	}
	all[i] = last
	*h = all
}

// pop removes the group in front.
func (h *groupHeap) pop() {
	n := len(*h) - 1
	all, last := (*h)[:n], (*h)[n]
	(*h)[n] = quietGroup{}
	*h = all
	if n == 0 {
		return
	}
	i := 0
	for next := 1; next < n; next = 2*i + 1 {
		if next+1 < n && all[next+1].at < all[next].at {
			next++
		}
		if all[next].at >= last.at {
			break
		}
		all[i], i = all[next], next
	}
	all[i] = last
}
