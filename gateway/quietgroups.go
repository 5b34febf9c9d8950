package gateway

import (
	priority "container/heap"
	"time"
)

// quietGroups says which groups of a shard are to be looked at though there is no
// news: a silence must be broken. A silence that was broken by news is found out
// when the group is looked at, so that news cost nothing here.
//
// Owned by one shard.
type quietGroups struct{ heap groupHeap }

// put takes a group in, or makes it known that it was served.
func (q *quietGroups) put(g *group) {
	switch at := g.heartbeatAt(); {
	case g.waiting == 0:
		g.looked = at
		priority.Push(&q.heap, g)
	case at.Before(g.looked):
		g.looked = at
		priority.Fix(&q.heap, g.waiting-1)
	}
}

// due calls f for the groups to be looked at now.
func (q *quietGroups) due(now time.Time, f func(*group)) {
	for len(q.heap) > 0 && !q.heap[0].looked.After(now) {
		g := q.heap[0]
		if g.heartbeatAt().After(now) {
			g.looked = g.heartbeatAt()
			priority.Fix(&q.heap, 0)
			continue
		}
		priority.Pop(&q.heap)
		f(g)
	}
}

// next is when a group is to be looked at; zero: never.
func (q *quietGroups) next() time.Time {
	if len(q.heap) == 0 {
		return time.Time{}
	}
	return q.heap[0].looked
}

// remove takes a group out.
func (q *quietGroups) remove(g *group) {
	if g.waiting > 0 {
		priority.Remove(&q.heap, g.waiting-1)
	}
}

// groupHeap has the group that is to be looked at first in front.
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
