package shard

import (
	"sync/atomic"

	"github.com/watchtide/watchtide/stream/watch"
)

// watchWaker notifies a shard of news on a watch. Its goroutine ends when stop is closed.
type watchWaker struct {
	stop chan struct{} // static after construction
	rung atomic.Bool   // there may be news for the groups

	// Owned by the shard.
	streams int // number of streams that follow the watch
	groups  map[*group]struct{}
}

func startWatchWaker(w *watch.Watch, ring, alarm func()) *watchWaker {
	b := &watchWaker{stop: make(chan struct{}), groups: map[*group]struct{}{}}
	go b.run(w, ring, alarm)
	return b
}

func (b *watchWaker) run(w *watch.Watch, ring, alarm func()) {
	for {
		changed := w.Changed() // before the shard looks, so that it misses nothing
		b.rung.Store(true)
		ring()
		select {
		case <-changed:
		case <-w.Done():
			b.rung.Store(true)
			alarm()
			return
		case <-b.stop:
			return
		}
	}
}
