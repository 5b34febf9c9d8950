package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream/memory"
	"pgregory.net/rapid"
)

// large is a change whose value has so many bytes.
func large(key string, revision uint64, bytes int) Change {
	return Change{Resource: Resource{Key: key, Revision: revision, Value: []byte(`"` + strings.Repeat("x", bytes) + `"`)}}
}

// larges returns n of them, at the revisions from 1 on.
func larges(n, bytes int) []Change {
	var all []Change
	for i := range n {
		all = append(all, large(fmt.Sprint("k", i), uint64(i+1), bytes))
	}
	return all
}

// transact sends a transaction for each of the lists, then runs more.
func transact(more SourceFunc, transactions ...[]Change) SourceFunc {
	return func(ctx context.Context, resume Resume, sink Sink) error {
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

func wantFull(t *testing.T, w *Watch, state State, text string) {
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
	if s := w.Status(); s.State != InSync || w.View().Count() != count || w.Full() != nil {
		t.Errorf("status %+v, %d resources, full: %v; want in sync with %d", s, w.View().Count(), w.Full(), count)
	}
}

// TestSnapshotThatDoesNotFit is dropped long before it is complete. Nothing is ever
// shown, and the watch is primed once the upstream has shrunk.
func TestSnapshotThatDoesNotFit(t *testing.T) {
	var sent atomic.Int64
	endless := func(ctx context.Context, _ Resume, sink Sink) error {
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
	bubble(t, WatchConfig{MaxBytes: 10 * mega}, []SourceFunc{
		endless, endless, snapshotThen("e", 9, larges(3, 10_000), stay),
	}, func(t *testing.T, w *Watch, s *script) {
		wantFull(t, w, Priming, "too large: what is being loaded needs at least 4.")
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
	snapshot, more := grows[:300], [][]Change{}
	for i := 300; i < 400; i++ {
		more = append(more, grows[i:i+1])
	}
	shrunk := []Change{large("k0", 1, 9000), large("k399", 400, 9000)}
	bubble(t, WatchConfig{MaxBytes: 8 * mega}, []SourceFunc{
		snapshotThen("e", 300, snapshot, transact(stay, more...)),
		snapshotThen("e", 400, grows, stay), // still too large
		snapshotThen("e", 401, shrunk, stay),
	}, func(t *testing.T, w *Watch, s *script) {
		r := follow(w)
		if got := r.next(); got[0] != "status stale" {
			t.Errorf("the subscriber is told %.500q", got)
		}
		wantFull(t, w, Stale, "too large: what is served needs at least 3.2 MiB, and may have 3.2 MiB of its memory ceiling, 8.0 MiB")
		count := w.View().Count()
		if count < 310 || count > 370 || w.View().Revision() != uint64(count) {
			t.Errorf("%d resources up to %d are shown, want those that were committed", count, w.View().Revision())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.resumes[1] != (Resume{}) {
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
		bubble(t, WatchConfig{MaxBytes: 6 * mega}, []SourceFunc{
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
			w, err := r.Add(WatchConfig{Name: name, Memory: shared, Source: SourceFunc(snapshotThen("e", 9000, larges(n, 10_000), stay))})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return w
		}
		a := add("a", 200)
		wantInSync(t, a, 200)
		b := add("b", 250)
		wantFull(t, b, Priming, "of the memory ceiling of all watches together, 10.0 MiB: narrow or remove watches")
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
			w, err := r.Add(WatchConfig{Name: fmt.Sprint("w", i), Memory: shared, Source: SourceFunc(snapshotThen("e", 900, larges(300, 1000), stay))})
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
	hoards := func(ctx context.Context, _ Resume, sink Sink) error {
		m := NewMerge()
		m.CountAt(sink)
		for i := uint64(1); ctx.Err() == nil; i++ {
			m.Listed(large(fmt.Sprint(i), i, 1000).Resource)
		}
		return ctx.Err()
	}
	bubble(t, WatchConfig{MaxBytes: mega}, []SourceFunc{hoards}, func(t *testing.T, w *Watch, _ *script) {
		wantFull(t, w, Priming, "too large: what is being loaded")
	})
}

// TestMergeGivesBack: what was counted for a merge is returned by its end.
func TestMergeGivesBack(t *testing.T) {
	sink := &holds{}
	m := NewMerge()
	m.CountAt(sink)
	m.Upserted(large("a", 5, 100).Resource)
	m.Listed(large("a", 4, 100).Resource)
	m.Listed(large("b", 2, 200).Resource)
	m.Listed(large("c", 3, 200).Resource)
	m.Deleted("c", 6)
	m.Complete(4, true)
	if sink.bytes < 300+2*int64(mergeCost) {
		t.Errorf("%d bytes are held", sink.bytes)
	}
	if err := m.Commit(sink, "e", 6); err != nil {
		t.Fatal(err)
	}
	if sink.bytes > 3*int64(mergeCost+1) {
		t.Errorf("%d bytes are held after the values were handed over", sink.bytes)
	}
	m.Close()
	if sink.bytes != 0 {
		t.Errorf("%d bytes are held after the end", sink.bytes)
	}
}

// holds is a sink that only counts.
type holds struct{ bytes int64 }

func (h *holds) Reset(string) error          { return nil }
func (h *holds) Upsert(Resource) error       { return nil }
func (h *holds) Delete(string, uint64) error { return nil }
func (h *holds) Commit(uint64) error         { return nil }
func (h *holds) Status(State, string) error  { return nil }
func (h *holds) Hold(n int64)                { h.bytes += n }

// TestCostIsEnough: what is reserved for a snapshot is at least what its log
// takes, and not much more.
func TestCostIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLog(LogConfig{Watch: "w", Account: memory.NewAccount(0, nil)})
		top := rapid.SampledFrom([]int{50, 500, 10_000, 100_000}).Draw(t, "size")
		bytes := rapid.IntRange(top/2, top).Draw(t, "bytes")
		snapshot := larges(rapid.IntRange(1, 400).Draw(t, "n"), bytes)
		resources := make([]Resource, len(snapshot))
		for i := range snapshot {
			resources[i] = snapshot[i].Resource
		}
		cost := l.snapshotCost(snapshot)
		if _, err := l.Replace("e", resources, 9000); err != nil {
			t.Fatal(err)
		}
		took := l.View().Bytes()
		if took > cost+2*segmentSize || cost > took*3/2+segmentSize {
			t.Errorf("%d bytes reserved, %d taken", cost, took)
		}
		if n := l.account.Own().Logs(); n != took {
			t.Errorf("%d bytes counted, %d taken", n, took)
		}
	})
}

// TestMemoryIsBounded: whatever an upstream does, what is counted and what the log
// really holds stay far below the ceiling, and what is refused changes nothing.
func TestMemoryIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ceiling = 8 * mega
		l := NewLog(LogConfig{Watch: "w", Account: memory.NewAccount(ceiling, nil), History: History{MaxBytes: 64 << 10}})
		revision := uint64(0)
		draw := func(t *rapid.T) []Change {
			var all []Change
			at := rapid.IntRange(0, 500).Draw(t, "at")
			sizes := rapid.SampledFrom([][]int{{100}, {5000}, {20_000}, {50_000, 100, 20_000}}).Draw(t, "bytes")
			deletes := rapid.SampledFrom([]int{1, 2, 7, 1000}).Draw(t, "deletes")
			for i := range rapid.IntRange(1, 200).Draw(t, "n") {
				revision++
				c := large(fmt.Sprint((at+i)%600), revision, sizes[i%len(sizes)])
				if c.Deleted = i%deletes == deletes-1; c.Deleted {
					c.Value = nil
				}
				all = append(all, c)
			}
			return all
		}
		check := func(t *rapid.T, before View, err error) {
			if err != nil && (!errors.Is(err, memory.ErrExceeded) || l.View().Revision() != before.Revision() || l.View().Count() != before.Count()) {
				t.Fatalf("%v; %d resources up to %d before, %d up to %d now", err,
					before.Count(), before.Revision(), l.View().Count(), l.View().Revision())
			}
			if n := l.account.Own().Logs(); n > ceiling*3/5 {
				t.Fatalf("%d bytes are counted", n)
			}
			if n := l.View().Bytes(); n > ceiling*3/4 {
				t.Fatalf("the log holds %d bytes", n)
			}
		}
		_, err := l.Replace("e", nil, revision)
		check(t, l.View(), err)
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				before, changes := l.View(), draw(t)
				_, err := l.Commit(changes, revision)
				check(t, before, err)
			},
			"snapshot": func(t *rapid.T) {
				before := l.View()
				var snapshot []Resource
				for _, c := range draw(t) {
					if !c.Deleted {
						snapshot = append(snapshot, c.Resource)
					}
				}
				revision++
				epoch := rapid.SampledFrom([]string{"e", "e", "f"}).Draw(t, "epoch")
				_, err := l.Replace(epoch, snapshot, revision)
				check(t, before, err)
			},
		})
	})
}

// TestLittleIsLeftUncompacted: under a small ceiling, what an outage superseded does
// not stay beside the current state.
func TestLittleIsLeftUncompacted(t *testing.T) {
	const ceiling = 8 * mega
	l := NewLog(LogConfig{Watch: "w", Account: memory.NewAccount(ceiling, nil), History: History{MaxBytes: 64 << 10}})
	revision := uint64(0)
	replace := func(name string, count int, sizes ...int) {
		t.Helper()
		var resources []Resource
		for i := range count {
			revision++
			resources = append(resources, large(fmt.Sprint(name, i), revision, sizes[i%len(sizes)]).Resource)
		}
		if _, err := l.Replace("e", resources, revision); err != nil {
			t.Fatal(err)
		}
	}
	replace("a", 43, 50_000, 20_000, 100)
	replace("b", 47, 20_000)
	replace("c", 149, 20_000)
	if n := l.View().Bytes(); n > ceiling*3/5 {
		t.Errorf("the log holds %d bytes of %d", n, ceiling)
	}
}

// TestCeilingThatAllowsNothing: the error still names what would be enough.
func TestCeilingThatAllowsNothing(t *testing.T) {
	err := memory.NewAccount(1, nil).Stage(stagingStep)
	if err == nil || !strings.Contains(err.Error(), "raise it to more than 160.0 KiB") {
		t.Errorf("error %v", err)
	}
}
