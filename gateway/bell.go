package gateway

import "github.com/watchtide/watchtide/stream"

// bell tells a shard that a watch has news. Its goroutine ends with stop.
type bell struct {
	streams int // that follow the watch; owned by the shard
	stop    chan struct{}
}

func startBell(w *stream.Watch, ring func()) *bell {
	b := &bell{stop: make(chan struct{})}
	go b.run(w, ring)
	return b
}

func (b *bell) run(w *stream.Watch, ring func()) {
	for {
		changed := w.Changed() // before the shard looks, so that nothing is missed
		ring()
		select {
		case <-changed:
		case <-w.Done():
			ring()
			return
		case <-b.stop:
			return
		}
	}
}
