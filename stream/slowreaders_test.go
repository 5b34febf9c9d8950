package stream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchLooksAtItsReaders whenever some of them pin a version: one that takes
// nothing loses it, and goes on with the newest.
func TestWatchLooksAtItsReaders(t *testing.T) {
	var more chan []Change
	done := func(context.Context, Resume, Sink) error { return nil }
	changes := func(ctx context.Context, resume Resume, sink Sink) error {
		more = make(chan []Change) // of the bubble
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
	bubble(t, WatchConfig{}, []SourceFunc{
		snapshotThen("e", 2000, largesW(2000, 4000), changes),
	}, func(t *testing.T, w *Watch, _ *script) {
		for i := range uint64(2) {
			s := w.Subscribe(SubscribeOptions{MinRate: 4 << 10})
			synctest.Wait()
			var b Batch
			s.Next(&b)
			s.Next(&b)
			more <- []Change{largeW("k1", 2001+i, 10)}
			time.Sleep(time.Minute)
			s.Next(&b)
			if e := firstEvent(&b); e.Type != StatusChange || e.State != CatchingUp {
				t.Errorf("after a minute in which the reader took nothing, it is sent %+v", e)
			}
			s.Close()
		}
	})
}

func firstEvent(b *Batch) (first Event) {
	for e := range b.Events() {
		return e
	}
	return first
}
