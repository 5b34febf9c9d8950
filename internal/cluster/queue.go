package cluster

import (
	"container/heap"
	"time"
)

// question is whether a user may list and watch a resource in a namespace, or if that is empty, in all of
// them.
type question struct {
	// Static after construction.
	of        *standing
	namespace string

	// Guarded by the mutex of Rights.
	first   bool // the standing waits for its first answer
	known   bool // there is an answer
	allowed bool
	at      time.Time // when the question of the answer was asked
	due     time.Time // when it is asked again
	stale   bool      // it is being asked, and the rules have changed since
	// failures counts how often it had no answer, although others had one at about that time.
	failures int
	queue    *queue // that it is in; nil: it is being asked
	place    int    // in the queue
	order    int64
}

// queue has questions in their order. It is a [heap.Interface].
type queue []*question

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].order < q[j].order }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements [heap.Interface].
func (q *queue) Push(x any) {
	one := x.(*question)
	one.place = len(*q)
	*q = append(*q, one)
}

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := len(*q) - 1
	one := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return one
}

// queues have the questions that are not being asked. What may be read is confirmed first, since a loss
// must be noticed in time; then come users that wait, in turns; then what may not be read.
//
// The zero value is empty. Guarded by the mutex of Rights.
type queues struct {
	granted, denied queue // by the time when they are due
	fresh           queue // in turns of their standings

	turns  int64               // of the newest question that was asked for the first time
	number int64               // of the newest question
	asked  map[*standing]int64 // the turn of the last question of each standing that waits
	picks  int
}

// first adds a question whose answer a request waits for. Users take turns, one question each.
func (q *queues) first(one *question) {
	if q.asked == nil {
		q.asked = map[*standing]int64{}
	}
	turn := max(q.asked[one.of]+1, q.turns)
	q.asked[one.of] = turn
	q.number++
	one.order = turn<<32 | q.number&0xffffffff
	q.put(&q.fresh, one)
}

// again adds a question that has been answered, or for whose answer no request waits.
func (q *queues) again(one *question) {
	one.order = one.due.UnixNano()
	if one.known && one.allowed {
		q.put(&q.granted, one)
	} else {
		q.put(&q.denied, one)
	}
}

func (q *queues) put(in *queue, one *question) {
	q.remove(one)
	one.queue = in
	heap.Push(in, one)
}

// remove removes a question from its queue, if it is in one.
func (q *queues) remove(one *question) {
	if one.queue != nil {
		heap.Remove(one.queue, one.place)
		one.queue = nil
	}
}

// forget forgets the turns of a standing.
func (q *queues) forget(s *standing) { delete(q.asked, s) }

// pick removes and returns the next question; nil: none is due.
func (q *queues) pick(now time.Time) *question {
	if len(q.fresh) == 0 {
		clear(q.asked)
	}
	of := [3]*queue{&q.granted, &q.fresh, &q.denied}
	q.picks++
	first := [4]int{0, 1, 0, 2}[q.picks%4] // each class has its share, whatever the others need
	for _, i := range [4]int{first, 0, 1, 2} {
		if one := of[i].due(now, of[i] == &q.fresh); one != nil {
			q.remove(one)
			if i == 1 {
				q.turns = one.order >> 32
			}
			return one
		}
	}
	return nil
}

// due returns the first question, if it is due; nil: it is not.
func (q queue) due(now time.Time, always bool) *question {
	if len(q) == 0 || !always && q[0].due.After(now) {
		return nil
	}
	return q[0]
}

// next returns when the next question is due; false: there is none.
func (q *queues) next(now time.Time) (at time.Time, ok bool) {
	if len(q.fresh) > 0 {
		return now, true
	}
	for _, in := range []queue{q.granted, q.denied} {
		if len(in) > 0 && (!ok || in[0].due.Before(at)) {
			at, ok = in[0].due, true
		}
	}
	return at, ok
}
