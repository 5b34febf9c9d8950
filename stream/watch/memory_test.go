package watch

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

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// large is a change whose value has so many bytes.
func large(key string, revision uint64, bytes int) log.Change {
	return log.Change{Resource: stream.Resource{Key: key, Revision: revision, Value: []byte(`"` + strings.Repeat("x", bytes) + `"`)}}
}

// larges returns n of them, at the revisions from 1 on.
func larges(n, bytes int) []log.Change {
	var all []log.Change
	for i := range n {
		all = append(all, large(fmt.Sprint("k", i), uint64(i+1), bytes))
	}
	return all
}

// transact sends a transaction for each of the lists, then runs more.
func transact(more stream.SourceFunc, transactions ...[]log.Change) stream.SourceFunc {
	return func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
		for _, changes := range transactions {
			last := uint64(0)
			for _, c := range changes {
				if err := sink.Upsert(c.Resource); err != nil {
					return err
				}
				last = max(last, c.Revision)
			}
			if err := sink.Commit(last); err != nil {
				return err
			}
		}
		return more(ctx, resume, sink)
	}
}

const mega = 1 << 20

func wantFull(t *testing.T, w *Watch, state stream.State, text string) {
	t.Helper()
	synctest.Wait()
	s := w.Status()
	if s.State != state || !strings.Contains(s.Full(), text) {
		t.Errorf("status %v %q, want %v with %q", s.State, s.Full(), state, text)
	}
	if err := w.Full(); !errors.Is(err, memory.ErrExceeded) || !strings.Contains(err.Error(), text) {
		t.Errorf("full: %v", err)
	}
}

func wantInSync(t *testing.T, w *Watch, count int) {
	t.Helper()
	synctest.Wait()
	if s := w.Status(); s.State != stream.InSync || w.Snapshot().Count() != count || w.Full() != nil {
		t.Errorf("status %+v, %d resources, full: %v; want in sync with %d", s, w.Snapshot().Count(), w.Full(), count)
	}
}

// TestSnapshotThatDoesNotFit is dropped long before it is complete. Nothing is ever
// shown, and the watch is primed once the upstream has shrunk.
func TestSnapshotThatDoesNotFit(t *testing.T) {
	var sent atomic.Int64
	endless := func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		if err := sink.Reset("e"); err != nil {
			return err
		}
		for i := uint64(1); ; i++ {
			sent.Store(int64(i))
			if err := sink.Upsert(large(fmt.Sprint(i), i, 10_000).Resource); err != nil {
				return errors.New("something else") // as from a source that does not wrap
			}
		}
	}
	bubble(t, Config{MaxBytes: 10 * mega}, []stream.SourceFunc{
		endless, endless, snapshotThen("e", 9, larges(3, 10_000), stay),
	}, func(t *testing.T, w *Watch, s *script) {
		wantFull(t, w, stream.Priming, "too large: what is being loaded needs at least 4.")
		if !strings.Contains(w.Status().Full(), "may have 4.0 MiB of its memory ceiling, 10.0 MiB: narrow the watch, or raise it to more than 10.") {
			t.Errorf("reason %q", w.Status().Full())
		}
		if n := sent.Load(); n < 300 || n > 410 {
			t.Errorf("%d resources of 10 kB were taken, want as many as fit into 4 MiB", n)
		}
		if n := w.Memory().Staged(); n != 0 {
			t.Errorf("%d bytes are still counted as staged", n)
		}
		time.Sleep(time.Minute)
		wantInSync(t, w, 3)
		if wait := s.times[1].Sub(s.times[0]); wait < 500*time.Millisecond {
			t.Errorf("tried again after %v: want more patience than after another failure", wait)
		}
		if n := w.Stats().Reconnects["memory"]; n != 2 {
			t.Errorf("%d reconnects are counted, want 2", n)
		}
	})
}

// TestGrowthThatDoesNotFit: the last state that fitted is shown as stale, and the
// watch recovers from a snapshot once the upstream has shrunk.
func TestGrowthThatDoesNotFit(t *testing.T) {
	grows := larges(400, 9000)
	snapshot, more := grows[:300], [][]log.Change{}
	for i := 300; i < 400; i++ {
		more = append(more, grows[i:i+1])
	}
	shrunk := []log.Change{large("k0", 1, 9000), large("k399", 400, 9000)}
	bubble(t, Config{MaxBytes: 8 * mega}, []stream.SourceFunc{
		snapshotThen("e", 300, snapshot, transact(stay, more...)),
		snapshotThen("e", 400, grows, stay), // still too large
		snapshotThen("e", 401, shrunk, stay),
	}, func(t *testing.T, w *Watch, s *script) {
		r := follow(w)
		if got := r.next(); got[0] != "status stale" {
			t.Errorf("the subscriber is told %.500q", got)
		}
		wantFull(t, w, stream.Stale, "too large: what is served needs at least 3.2 MiB, and may have 3.2 MiB of its memory ceiling, 8.0 MiB")
		count := w.Snapshot().Count()
		if count < 310 || count > 370 || w.Snapshot().Revision() != uint64(count) {
			t.Errorf("%d resources up to %d are shown, want those that were committed", count, w.Snapshot().Revision())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.resumes[1] != (stream.Resume{}) {
			t.Errorf("reconnected with %+v, want from nothing", s.resumes[1])
		}
		time.Sleep(5 * time.Minute)
		wantInSync(t, w, 2)
		if got := r.next(); len(r.state) != 2 || got[len(got)-1] != "status in_sync" {
			t.Errorf("the subscriber holds %d resources, and was told %.500q", len(r.state), got)
		}
		if n := w.Memory().Logs(); n > mega/2 {
			t.Errorf("%d bytes are counted for two resources", n)
		}
		r.s.Close()
	})
}

// TestChangeOfEverything: a snapshot that shares nothing with what is served does
// not fit beside it. Subscribers begin again.
func TestChangeOfEverything(t *testing.T) {
	before, after := larges(210, 10_000), larges(210, 10_000)
	for i := range after {
		after[i].Revision += 1000
	}
	for _, epoch := range []string{"e", "another"} {
		bubble(t, Config{MaxBytes: 6 * mega}, []stream.SourceFunc{
			snapshotThen("e", 210, before, stayFor(time.Minute, nil)),
			snapshotThen(epoch, 1210, after, stay),
		}, func(t *testing.T, w *Watch, _ *script) {
			r := follow(w)
			r.next()
			time.Sleep(2 * time.Minute)
			got := r.next()
			wantInSync(t, w, 210)
			if !strings.Contains(strings.Join(got, ","), "reset ") {
				t.Errorf("epoch %s: got %.200q, want a reset", epoch, got)
			}
			if m := w.Memory(); m.Logs()*7/5+m.Staged() > m.Bytes() || m.Staged() > 2*mega {
				t.Errorf("%d bytes in logs, %d staged", m.Logs(), m.Staged())
			}
			r.s.Close()
		})
	}
}

// TestSharedMemory: a watch that grows takes no more than what is left, and the
// other one continues.
func TestSharedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.NewCeiling(10 * mega)
		r := NewRegistry()
		defer r.Close()
		add := func(name string, n int) *Watch {
			w, err := r.Add(Config{Name: name, Memory: shared, Source: stream.SourceFunc(snapshotThen("e", 9000, larges(n, 10_000), stay))})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return w
		}
		a := add("a", 200)
		wantInSync(t, a, 200)
		b := add("b", 250)
		wantFull(t, b, stream.Priming, "of the memory ceiling of all watches together, 10.0 MiB: narrow or remove watches")
		wantInSync(t, a, 200)
		r.Remove("a")
		time.Sleep(10 * time.Minute)
		wantInSync(t, b, 250)
		r.Remove("b")
		if shared.Logs() != 0 || shared.Staged() != 0 {
			t.Errorf("without watches %d and %d bytes are counted", shared.Logs(), shared.Staged())
		}
	})
}

// TestStagedIsGivenBack: what was loaded is no longer counted as being loaded.
// Otherwise many small watches would take each other's room while they are
// connected.
func TestStagedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.NewCeiling(20 * mega)
		r := NewRegistry()
		defer r.Close()
		for i := range 20 {
			w, err := r.Add(Config{Name: fmt.Sprint("w", i), Memory: shared, Source: stream.SourceFunc(snapshotThen("e", 900, larges(300, 1000), stay))})
			if err != nil {
				t.Fatal(err)
			}
			wantInSync(t, w, 300)
		}
		if most := int64(20 * stagingStep); shared.Staged() > most {
			t.Errorf("%d bytes are staged when nothing is being loaded, want %d at most", shared.Staged(), most)
		}
	})
}

// TestSourceThatHoldsTooMuch: what a source itself holds counts, and ends its
// connection.
func TestSourceThatHoldsTooMuch(t *testing.T) {
	hoards := func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		m := adapter.NewMerge()
		m.CountAt(sink)
		for i := uint64(1); ctx.Err() == nil; i++ {
			m.Listed(large(fmt.Sprint(i), i, 1000).Resource)
		}
		return ctx.Err()
	}
	bubble(t, Config{MaxBytes: mega}, []stream.SourceFunc{hoards}, func(t *testing.T, w *Watch, _ *script) {
		wantFull(t, w, stream.Priming, "too large: what is being loaded")
	})
}

// TestSourceThatReadsTooMuch: a source may read in other goroutines. What they hold
// counts while nothing is passed on, and however the source words its error.
func TestSourceThatReadsTooMuch(t *testing.T) {
	reads := func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for held := int64(0); ctx.Err() == nil; held += 1000 {
					sink.Charge(1000)
				}
			})
		}
		readers.Wait()
		return errors.New("the connection was closed")
	}
	bubble(t, Config{MaxBytes: mega}, []stream.SourceFunc{reads}, func(t *testing.T, w *Watch, _ *script) {
		wantFull(t, w, stream.Priming, "too large: what is being loaded")
	})
}

// TestCeilingThatAllowsNothing: the error still names what would be enough.
func TestCeilingThatAllowsNothing(t *testing.T) {
	err := memory.NewAccount(1, nil).Stage(stagingStep)
	if err == nil || !strings.Contains(err.Error(), "raise it to more than 160.0 KiB") {
		t.Errorf("error %v", err)
	}
}
