package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// TestWatchLooksAtItsReaders whenever some of them pin a version: one that takes
// nothing loses it, and goes on with the newest.
func TestWatchLooksAtItsReaders(t *testing.T) {
	var more chan []log.Change
	done := func(context.Context, stream.Resume, stream.Sink) error { return nil }
	changes := func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		more = make(chan []log.Change) // of the bubble
		for {
			select {
			case next := <-more:
				if err := transact(done, next)(ctx, resume, sink); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 2000, larges(2000, 4000), changes),
	}, func(t *testing.T, w *Watch, _ *script) {
		for i := range uint64(2) {
			s := w.Subscribe(log.SubscribeOptions{MinRate: 4 << 10})
			synctest.Wait()
			var b log.Batch
			s.Next(&b)
			s.Next(&b)
			more <- []log.Change{large("k1", 2001+i, 10)}
			time.Sleep(time.Minute)
			s.Next(&b)
			if e := firstEvent(&b); e.Type != stream.StatusChange || e.State != stream.CatchingUp {
				t.Errorf("after a minute in which the reader took nothing, it is sent %+v", e)
			}
			s.Close()
		}
	})
}

func firstEvent(b *log.Batch) (first stream.Event) {
	for e := range b.Events() {
		return e
	}
	return first
}
