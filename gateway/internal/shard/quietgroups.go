package shard

import (
	priority "container/heap"
	"time"
)

// quietGroups determines which groups of a shard must be checked without news,
// since a heartbeat may be due. Only that check finds out whether news has
// already made it unnecessary, so that news costs nothing here.
//
// Owned by one shard.
type quietGroups struct{ heap groupHeap }

// put adds a group, or records that it was served.
func (q *quietGroups) put(g *group) {
	switch at := g.HeartbeatAt(); {
	case g.waiting == 0:
		g.looked = at
		priority.Push(&q.heap, g)
	case at.Before(g.looked):
		g.looked = at
		priority.Fix(&q.heap, g.waiting-1)
	}
}

// due calls f for the groups that must be checked now.
func (q *quietGroups) due(now time.Time, f func(*group)) {
	for len(q.heap) > 0 && !q.heap[0].looked.After(now) {
		g := q.heap[0]
		if g.HeartbeatAt().After(now) {
			g.looked = g.HeartbeatAt()
			priority.Fix(&q.heap, 0)
			continue
		}
		priority.Pop(&q.heap)
		f(g)
	}
}

// quietTick is how late a group may be checked, so that many are checked at one time: there
// may be one for each of thousands of views.
const quietTick = 100 * time.Millisecond

// next returns when a group must be checked; zero: never.
func (q *quietGroups) next() time.Time {
	if len(q.heap) == 0 {
		return time.Time{}
	}
	return q.heap[0].looked.Add(quietTick - 1).Truncate(quietTick)
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
func (h groupHeap) Less(i, j int) bool { return h[i].looked.Before(h[j].looked) }

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
