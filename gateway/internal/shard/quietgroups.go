package shard

import (
	priority "container/heap"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/monotime"
)

// quietGroups determines which groups of a shard must be checked without news,
// since a heartbeat may be due. Only that check finds out whether news has
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
	switch at := monotime.Nanos(g.HeartbeatAt()); {
	case g.waiting == 0:
		g.looked = at
		priority.Push(&q.heap, g)
	case at < g.looked:
		g.looked = at
		priority.Fix(&q.heap, g.waiting-1)
	}
}

// due calls f for the groups that must be checked now. After passMembers groups it stops in the
// middle of the round, so that other work gets its turn.
func (q *quietGroups) due(now time.Time, f func(*group)) {
	for range passMembers {
		if len(q.heap) == 0 {
			break
		}
		g, until := q.heap[0], monotime.Nanos(now)
		if q.round {
			until += int64(g.early())
		}
		if g.looked > until {
			break
		}
		if at := monotime.Nanos(g.HeartbeatAt()); at > until {
			g.looked = at
			priority.Fix(&q.heap, 0)
			continue
		}
		q.round, g.beats = true, true
		priority.Pop(&q.heap)
		f(g)
	}
	q.round = q.round && q.goesOn(now)
}

// goesOn reports whether a round has been interrupted, and has more groups.
func (q *quietGroups) goesOn(now time.Time) bool {
	return len(q.heap) > 0 && q.heap[0].looked <= monotime.Nanos(now)+int64(q.heap[0].early())
}

// quietTick is how late a group may be checked, so that many are checked at one time: there
// may be one for each of thousands of views.
const quietTick = 100 * time.Millisecond

// next returns when a group must be checked; zero: never.
func (q *quietGroups) next() time.Time {
	if len(q.heap) == 0 {
		return time.Time{}
	}
	return monotime.Time((q.heap[0].looked + int64(quietTick) - 1) / int64(quietTick) * int64(quietTick))
}

// remove removes a group.
func (q *quietGroups) remove(g *group) {
	if g.waiting > 0 {
		priority.Remove(&q.heap, g.waiting-1)
	}
}

// groupHeap has the group that must be checked first in front.
type groupHeap []*group

// Len implements heap.Interface.
func (h groupHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h groupHeap) Less(i, j int) bool { return h[i].looked < h[j].looked }

// Swap implements heap.Interface.
func (h groupHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].waiting, h[j].waiting = i+1, j+1
}

// Push implements heap.Interface.
func (h *groupHeap) Push(x any) {
	g := x.(*group)
	*h = append(*h, g)
	g.waiting = len(*h)
}

// Pop implements heap.Interface.
func (h *groupHeap) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	g.waiting = 0
	return g
}
