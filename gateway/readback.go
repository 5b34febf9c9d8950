package gateway

import (
	"context"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// readBackWait is how long a write waits until reads show it. Its answer comes
// in any case: the write is done.
const readBackWait = time.Second

// readBack waits until seen says that the watch shows what was just written, so
// that whoever has the answer to a write and then reads here sees it.
func readBack(ctx context.Context, w *stream.Watch, seen func(stream.View) bool) {
	if seen(w.View()) {
		return
	}
	sub := w.Subscribe(stream.SubscribeOptions{})
	defer sub.Close()
	timer := time.NewTimer(readBackWait)
	defer timer.Stop()
	var batch stream.Batch
	for {
		sub.Next(&batch) // Changed is about the version that it saw
		if seen(w.View()) {
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
