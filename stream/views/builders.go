package views

import (
	"slices"
	"sync"
	"time"
)

// builders build views, and feed the costly ones: a few goroutines for all watches. Clients
// take turns, and so do the views of a client, so that one that takes long delays nobody
// for long. A goroutine ends when there is nothing to do.
type builders struct {
	// Static after construction.
	views *Views
	most  int

	goroutines sync.WaitGroup

	mu      sync.Mutex          // guards the following fields, and queued of each view
	queues  map[string][]*entry // by client
	clients []string            // that have a queue, in the order of their turns
	running int
	closed  bool
}

// turn is how long a view is worked on before others have their turn.
const turn = 10 * time.Millisecond

// add queues a view, which belongs to the builders from then on.
func (b *builders) add(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enqueue(e)
	if b.running < b.most {
		b.running++
		b.goroutines.Go(b.run)
	}
}

func (b *builders) enqueue(e *entry) {
	queue := b.queues[e.client]
	if len(queue) == 0 {
		b.clients = append(b.clients, e.client)
	}
	b.queues[e.client] = append(queue, e)
}

// take returns the next view; nil if there is none, which ends the goroutine.
func (b *builders) take() *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.clients) == 0 {
		b.running--
		return nil
	}
	client := b.clients[0]
	b.clients = slices.Delete(b.clients, 0, 1)
	queue := b.queues[client]
	e := queue[0]
	queue[0] = nil
	if queue = queue[1:]; len(queue) == 0 {
		delete(b.queues, client)
	} else {
		b.queues[client] = queue
		b.clients = append(b.clients, client)
	}
	return e
}

func (b *builders) run() {
	for e := b.take(); e != nil; e = b.take() {
		b.work(e)
	}
}

// work gives a view a turn, and hands it on if it is up to date then.
func (b *builders) work(e *entry) {
	if e.removed.Load() {
		e.end()
		return
	}
	if e.full.Load() {
		e.tooLarge()
		e.parent.lane(e).post(parks, e)
		return
	}
	if !e.feed(time.Now().Add(turn)) {
		b.mu.Lock()
		b.enqueue(e)
		b.mu.Unlock()
		b.views.relieve()
		return
	}
	b.views.relieve()
	what := joins
	if e.costly || !e.whole {
		what = parks
	}
	e.parent.lane(e).post(what, e)
}

// close waits for the goroutines. All views have been removed.
func (b *builders) close() { b.goroutines.Wait() }
