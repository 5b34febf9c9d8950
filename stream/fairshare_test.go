package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sharing returns accounts that share a ceiling of which logs may have 1,000 bytes;
// the slack is 50.
func sharing(n int) (*Memory, []*account) {
	shared := NewMemory(2500)
	var all []*account
	for range n {
		a := newAccount(0, shared)
		a.join(newPins(a))
		all = append(all, a)
	}
	return shared, all
}

// TestFairShare: when something does not fit, the account that holds the most is
// refused, and none within its equal share.
func TestFairShare(t *testing.T) {
	type step struct {
		who      int
		bytes    int64
		refused  bool
		squeezed int // account that is told to give up memory; 0: none
	}
	for name, steps := range map[string][]step{
		"the largest asks":        {{1, 600, false, 0}, {2, 400, false, 0}, {1, 1, true, 0}},
		"the only one asks":       {{1, 1000, false, 0}, {1, 1, true, 0}},
		"a small one asks":        {{1, 990, false, 0}, {2, 10, false, 0}, {2, 1, false, 0}, {2, 49, false, 0}, {2, 1, false, 1}},
		"within its share":        {{1, 1000, false, 0}, {2, 333, false, 1}, {3, 333, false, 1}},
		"neither small nor large": {{1, 500, false, 0}, {2, 450, false, 0}, {3, 50, false, 0}, {2, 40, false, 0}, {2, 5, false, 0}, {2, 6, true, 0}},
		"it would be the largest": {{1, 600, false, 0}, {2, 300, false, 0}, {2, 301, true, 0}},
		"both have the same":      {{1, 500, false, 0}, {2, 400, false, 0}, {2, 100, false, 0}, {2, 1, true, 0}, {1, 1, true, 0}},
		"what is given is given":  {{1, 1000, false, 0}, {1, -500, false, 0}, {2, 500, false, 0}, {2, 1, true, 0}},
		"it can always have less": {{1, 990, false, 0}, {2, 50, false, 0}, {1, -100, false, 0}, {2, 60, false, 0}},
		"beyond its share":        {{1, 900, false, 0}, {2, 500, true, 0}},
	} {
		shared, all := sharing(3)
		for i, s := range steps {
			err := all[s.who-1].grow(s.bytes)
			if refused := err != nil; refused != s.refused {
				t.Errorf("%s: step %d: error %v", name, i, err)
			}
			for j, a := range all {
				if told := len(a.squeezed) > 0; told != (s.squeezed == j+1) {
					t.Errorf("%s: step %d: watch %d is told: %t", name, i, j+1, told)
				} else if told {
					<-a.squeezed
				}
			}
		}
		total := int64(0)
		for _, a := range all {
			total += a.log
			if a.log != a.own.Logs() {
				t.Errorf("%s: %d and %d bytes are counted", name, a.log, a.own.Logs())
			}
		}
		if shared.Logs() != total {
			t.Errorf("%s: %d bytes are counted, and %d held", name, shared.Logs(), total)
		}
	}
}

// TestReservationsAtTheSameTime: of two reservations that do not fit together, one
// is granted.
func TestReservationsAtTheSameTime(t *testing.T) {
	for range 2000 {
		shared, all := sharing(2)
		var granted atomic.Int64
		var both sync.WaitGroup
		for _, a := range all {
			both.Go(func() {
				if a.stage(600) == nil {
					granted.Add(1)
				}
			})
		}
		both.Wait()
		if granted.Load() != 1 || shared.Staged() != 600 {
			t.Fatalf("%d were granted, %d bytes are counted", granted.Load(), shared.Staged())
		}
	}
}

// growing is a source whose collection grows when a test says so.
func growing(count int, size int, grow <-chan int) SourceFunc {
	return func(ctx context.Context, _ Resume, sink Sink) error {
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
		shared := NewMemory(20 * mega) // 8 MiB for logs
		r := NewRegistry()
		defer r.Close()
		growLarge, growSmall := make(chan int), make(chan int)
		add := func(name string, source SourceFunc) *Watch {
			w, err := r.Add(WatchConfig{Name: name, Memory: shared, Source: source})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return w
		}
		lot, little := add("large", growing(120, 64_000, growLarge)), add("small", growing(1, 10, growSmall))
		wantInSync(t, lot, 120)
		for lot.Status().State == InSync {
			growLarge <- 20_000
			synctest.Wait()
		}
		wantFull(t, lot, Stale, "what is served")
		for i := range 200 {
			growSmall <- 1000
			wantInSync(t, little, i+2)
		}
		if lot.View().Count() < 120 || lot.Status().State != Stale {
			t.Errorf("the large one has %d resources, and is %v", lot.View().Count(), lot.Status())
		}
		for range 15 {
			growSmall <- 60_000
		}
		wantInSync(t, little, 216)
		wantFull(t, lot, Priming, "of the memory ceiling of all watches together")
		if n := shared.Logs(); n > 3*mega {
			t.Errorf("%d bytes are counted", n)
		}
		time.Sleep(10 * time.Minute)
		wantFull(t, lot, Priming, "a complete snapshot")
		r.Remove("small")
		time.Sleep(10 * time.Minute)
		wantInSync(t, lot, 120)
	})
}

// TestLoadingBesideALargeSnapshot: a snapshot within the equal share of its watch is
// loaded, and the larger one is given up.
func TestLoadingBesideALargeSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewMemory(20 * mega) // 8 MiB for what is staged
		r := NewRegistry()
		defer r.Close()
		more := make(chan int)
		lot, err := r.Add(WatchConfig{Name: "large", Memory: shared, Source: SourceFunc(func(ctx context.Context, _ Resume, sink Sink) error {
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
		little, err := r.Add(WatchConfig{Name: "small", Memory: shared, Source: SourceFunc(func(ctx context.Context, resume Resume, sink Sink) error {
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
		wantFull(t, lot, Priming, "what is being loaded")
		close(complete)
		wantInSync(t, little, 50)
		if why := lot.Full(); why == nil || !strings.Contains(why.Error(), "all watches together") {
			t.Errorf("full: %v", why)
		}
	})
}
