package unary

import (
	"context"
	"time"

	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// readBackWait is how long a write waits until reads show it. The write is answered
// in any case, since it has succeeded.
const readBackWait = time.Second

// readBack waits until seen reports that the watch shows the write, so that a
// client that reads here after the answer to its write sees it.
func readBack(ctx context.Context, w *watch.Watch, seen func(log.Snapshot) bool) {
	if seen(w.Snapshot()) {
		return
	}
	sub := w.Subscribe(log.SubscribeOptions{})
	defer sub.Close()
	timer := time.NewTimer(readBackWait)
	defer timer.Stop()
	var batch log.Batch
	for {
		sub.Next(&batch) // Changed refers to the version that Next saw
		if seen(w.Snapshot()) {
			return
		}
		select {
		case <-sub.Changed():
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
