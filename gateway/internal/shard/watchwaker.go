package shard

import (
	"sync/atomic"

	"github.com/watchtide/watchtide/stream/watch"
)

// watchWaker notifies a shard of news on a watch. For a watch of its own it has a
// goroutine; a view notifies it directly, since there may be very many.
type watchWaker struct {
	shard *shard      // static after construction
	stop  func()      // static after construction
	rung  atomic.Bool // it is among the wakers that have rung

	// Owned by the shard.
	streams int // number of streams that follow the watch
	groups  groupSet
}

// groupSet is a set of groups. There are very many sets, and most have one group.
//
// Owned by one shard.
type groupSet struct {
	one  *group
	more map[*group]struct{} // the others; nil: there were none
}

// add adds a group that is not there.
func (s *groupSet) add(g *group) {
	if s.one == nil {
		s.one = g
		return
	}
	if s.more == nil {
		s.more = map[*group]struct{}{}
	}
	s.more[g] = struct{}{}
}

func (s *groupSet) remove(g *group) {
	if s.one == g {
		s.one = nil
	}
	delete(s.more, g)
}

// each calls f for all groups.
func (s *groupSet) each(f func(*group)) {
	if s.one != nil {
		f(s.one)
	}
	for g := range s.more {
		f(g)
	}
}

func startWatchWaker(w *watch.Watch, s *shard) *watchWaker {
	b := &watchWaker{shard: s}
	notified, is := w.Notify(func() { b.news(w) })
	if is {
		b.stop = notified
		b.news(w)
		return b
	}
	stop := make(chan struct{})
	b.stop = func() { close(stop) }
	go b.run(w, stop)
	return b
}

// run rings for news, until stop is closed.
func (b *watchWaker) run(w *watch.Watch, stop <-chan struct{}) {
	for {
		changed := w.Changed() // before the shard looks, so that it misses nothing
		b.news(w)
		select {
		case <-changed:
		case <-w.Done():
			b.news(w)
			return
		case <-stop:
			return
		}
	}
}

// news makes the shard look at the watch.
func (b *watchWaker) news(w *watch.Watch) {
	if !b.rung.Swap(true) {
		b.shard.mu.Lock()
		b.shard.wokenBy = append(b.shard.wokenBy, b)
		b.shard.mu.Unlock()
	}
	if w.Ended() {
		b.shard.alarm()
		return
	}
	b.shard.ring()
}
