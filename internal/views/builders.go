package views

import (
	"slices"
	"sync"
)

// builders build views, or build and feed those that are fed alone: a few goroutines for all watches.
// Clients take turns, and so do the jobs of a client, so that one that takes long delays nobody
// for long. A goroutine ends when there is nothing to do.
type builders struct {
	// Static after construction.
	views *Views
	most  int

	goroutines sync.WaitGroup

	mu      sync.Mutex       // guards the following fields
	queues  map[string][]job // by client
	clients []string         // that have a queue, in the order of their turns
	running int
}

// job is a view, or a batch of views that was begun. Each belongs to the builders.
type job struct {
	client string
	view   *entry // nil: a batch
	batch  *batch
}

// parent returns the watch whose views it makes.
func (j job) parent() *parent {
	if j.view != nil {
		return j.view.parent
	}
	return j.batch.parent
}

// add queues a view.
func (b *builders) add(e *entry) { b.start(job{client: e.client, view: e}) }

// continueWith queues a batch again, whose views have fallen behind.
func (b *builders) continueWith(again *batch) {
	for e := range again.members {
		b.start(job{client: e.client, batch: again})
		return
	}
}

func (b *builders) start(j job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enqueue(j)
	if b.running < b.most {
		b.running++
		b.goroutines.Go(b.run)
	}
}

func (b *builders) enqueue(j job) {
	if len(b.queues[j.client]) == 0 {
		b.clients = append(b.clients, j.client)
	}
	b.queues[j.client] = append(b.queues[j.client], j)
}

// take returns the next job; false if there is none, which ends the goroutine. A view takes
// others with it, whoever asked for them, if they can be made together.
func (b *builders) take() (job, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.clients) == 0 {
		b.running--
		return job{}, false
	}
	client := b.clients[0]
	j := b.queues[client][0]
	b.queues[client] = slices.Delete(b.queues[client], 0, 1)
	b.clients = append(b.clients[1:], client) // the last in the next round
	if j.view != nil && !j.view.alone.Load() {
		j = job{client: client, batch: newBatch(b.gather(j.view))}
	}
	b.clients = slices.DeleteFunc(b.clients, func(c string) bool {
		done := len(b.queues[c]) == 0
		if done {
			delete(b.queues, c)
		}
		return done
	})
	return j, true
}

// gather takes the views that can be made together with first out of the queues.
func (b *builders) gather(first *entry) []*entry {
	views := []*entry{first}
	for _, client := range b.clients {
		b.queues[client] = slices.DeleteFunc(b.queues[client], func(j job) bool {
			if j.view == nil || !accepts(first, j.view, len(views)) {
				return false
			}
			views = append(views, j.view)
			return true
		})
	}
	return views
}

func (b *builders) run() {
	for j, ok := b.take(); ok; j, ok = b.take() {
		if !b.work(j) {
			b.mu.Lock()
			b.enqueue(j)
			b.mu.Unlock()
		}
		b.views.relieve()
	}
}

// work gives a job a turn. It hands on what is up to date then.
func (b *builders) work(j job) (done bool) {
	t := newTurn(j.parent())
	if j.view != nil {
		return b.feed(j.view, t)
	}
	for e := range j.batch.members {
		if !j.batch.begun && !e.whole && !b.views.wants(e) {
			j.batch.drop(e)
		}
	}
	if !j.batch.work(t) {
		return false
	}
	var feeder *feeder
	for e := range j.batch.members {
		feeder = e.parent.feeder(e)
		if !e.whole {
			j.batch.drop(e)
			feeder.ask(suspends, e)
		}
	}
	if len(j.batch.members) > 0 {
		feeder.handOver(j.batch)
	}
	return true
}

// feed gives a view that is fed alone a turn.
func (b *builders) feed(e *entry, t *turn) (done bool) {
	switch {
	case e.removed.Load():
		e.end()
		return true
	case e.full.Load():
		e.tooLarge()
	case !e.whole && !e.views.wants(e):
		return true // it goes on when there is a holder
	case !e.feed(t):
		return false
	}
	e.parent.feeder(e).ask(suspends, e)
	return true
}

// close waits for the goroutines. All views have been removed.
func (b *builders) close() { b.goroutines.Wait() }
