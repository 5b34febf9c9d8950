package gateway

import "github.com/watchtide/watchtide/stream"

// bell tells a shard that a watch has news. Its goroutine ends with stop.
type bell struct {
	streams int // that follow the watch; owned by the shard
	stop    chan struct{}
}

func startBell(w *stream.Watch, ring, alarm func()) *bell {
	b := &bell{stop: make(chan struct{})}
	go b.run(w, ring, alarm)
	return b
}

func (b *bell) run(w *stream.Watch, ring, alarm func()) {
	for {
		changed := w.Changed() // before the shard looks, so that nothing is missed
		ring()
		select {
		case <-changed:
		case <-w.Done():
			alarm()
			return
		case <-b.stop:
			return
		}
	}
}
