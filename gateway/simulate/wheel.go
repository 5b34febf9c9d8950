package main

import "time"

// client is one of up to many millions. It has at most one event ahead of it, and is an
// element of the list of that event's millisecond.
type client struct {
	next, prev int32
	due        int32 // ms; meaningful while it is in a list
	lost       int32 // ms: since when it has not been in sync
	ready      int32 // ms: when it has been sent what it lacks
	opened     int32 // ms: when its stream was opened
	replica    int16 // that carries its stream; -1: none
	failures   uint8
	state      state
	has        bool // some state, with which it resumes
}

type state uint8

const (
	away    state = iota // its next attempt is ahead
	waiting              // the answer to its attempt will come too late
	opening              // the answer is on its way, and then what it lacks
	inSync
	leaving // in sync, and its goodbye is ahead
)

const (
	slots = 1 << 17 // ms: more than any wait
	none  = -1
)

// wheel has the events of the clients, by the millisecond.
type wheel struct {
	first   []int32
	clients []client
}

func newWheel(n int) wheel {
	w := wheel{first: make([]int32, slots), clients: make([]client, n)}
	for i := range w.first {
		w.first[i] = none
	}
	for i := range w.clients {
		w.clients[i] = client{due: none, replica: none}
	}
	return w
}

// schedule gives a client another event, earlier than asked if the wheel is too small.
func (w *wheel) schedule(at, now int32, wait time.Duration) {
	w.cancel(at)
	c := &w.clients[at]
	c.due = now + 1 + int32(min(wait.Milliseconds(), slots-2))
	slot := &w.first[c.due%slots]
	if c.prev, c.next = none, *slot; c.next != none {
		w.clients[c.next].prev = at
	}
	*slot = at
}

func (w *wheel) cancel(at int32) {
	c := &w.clients[at]
	if c.due == none {
		return
	}
	if c.next != none {
		w.clients[c.next].prev = c.prev
	}
	if c.prev != none {
		w.clients[c.prev].next = c.next
	} else {
		w.first[c.due%slots] = c.next
	}
	c.due = none
}

// pop returns a client whose event is due now; none: there is none.
func (w *wheel) pop(now int32) int32 {
	at := w.first[now%slots]
	if at != none {
		w.cancel(at)
	}
	return at
}
