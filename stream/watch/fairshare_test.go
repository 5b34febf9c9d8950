package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// growing is a source whose collection grows when a test says so.
func growing(count int, size int, grow <-chan int) stream.SourceFunc {
	return func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		revision := uint64(count)
		if err := sink.Reset("e"); err != nil {
			return err
		}
		for _, c := range larges(count, size) {
			if err := sink.Upsert(c.Resource); err != nil {
				return err
			}
		}
		if err := sink.Commit(revision); err != nil {
			return err
		}
		for {
			select {
			case n := <-grow:
				revision++
				if err := errors.Join(sink.Upsert(large(fmt.Sprint("g", revision), revision, n).Resource), sink.Commit(revision)); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// TestSmallBesideALargeWatch: the shared ceiling does not affect the small watch.
// The large one is stale when it asks for more, and gives up what it has when others
// need it. It comes back when there is room.
func TestSmallBesideALargeWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.NewCeiling(20 * mega) // 8 MiB for logs
		r := NewRegistry()
		defer r.Close()
		growLarge, growSmall := make(chan int), make(chan int)
		add := func(name string, source stream.SourceFunc) *Watch {
			w, err := r.Add(Config{Name: name, Memory: shared, Source: source})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return w
		}
		lot, little := add("large", growing(120, 64_000, growLarge)), add("small", growing(1, 10, growSmall))
		wantInSync(t, lot, 120)
		for lot.Status().State == stream.InSync {
			growLarge <- 20_000
			synctest.Wait()
		}
		wantFull(t, lot, stream.Stale, "what is served")
		for i := range 200 {
			growSmall <- 1000
			wantInSync(t, little, i+2)
		}
		if lot.Snapshot().Count() < 120 || lot.Status().State != stream.Stale {
			t.Errorf("the large one has %d resources, and is %v", lot.Snapshot().Count(), lot.Status())
		}
		for range 15 {
			growSmall <- 60_000
		}
		wantInSync(t, little, 216)
		wantFull(t, lot, stream.Priming, "of the memory ceiling of all watches together")
		if n := shared.Logs(); n > 3*mega {
			t.Errorf("%d bytes are counted", n)
		}
		time.Sleep(10 * time.Minute)
		wantFull(t, lot, stream.Priming, "a complete snapshot")
		r.Remove("small")
		time.Sleep(10 * time.Minute)
		wantInSync(t, lot, 120)
	})
}

// TestLoadingBesideALargeSnapshot: a snapshot within the equal share of its watch is
// loaded, and the larger one is given up.
func TestLoadingBesideALargeSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.NewCeiling(20 * mega) // 8 MiB for what is staged
		r := NewRegistry()
		defer r.Close()
		more := make(chan int)
		lot, err := r.Add(Config{Name: "large", Memory: shared, Source: stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
			if err := sink.Reset("e"); err != nil {
				return err
			}
			for i := uint64(1); ; i++ {
				select {
				case n := <-more:
					if err := sink.Upsert(large(fmt.Sprint(i), i, n).Resource); err != nil {
						return err
					}
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})})
		if err != nil {
			t.Fatal(err)
		}
		for range 110 {
			more <- 64_000
		}
		complete := make(chan struct{})
		little, err := r.Add(Config{Name: "small", Memory: shared, Source: stream.SourceFunc(func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
			if err := sink.Reset("e"); err != nil {
				return err
			}
			for _, c := range larges(50, 60_000) {
				if err := sink.Upsert(c.Resource); err != nil {
					return err
				}
			}
			<-complete
			return errors.Join(sink.Commit(9000), stay(ctx, resume, sink))
		})})
		if err != nil {
			t.Fatal(err)
		}
		wantFull(t, lot, stream.Priming, "what is being loaded")
		close(complete)
		wantInSync(t, little, 50)
		if why := lot.Full(); why == nil || !strings.Contains(why.Error(), "all watches together") {
			t.Errorf("full: %v", why)
		}
	})
}
