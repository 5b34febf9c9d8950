package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

func TestNewNamesTheCollections(t *testing.T) {
	for _, collection := range []string{"", "process", "Processes"} {
		_, err := New(Config{Collection: collection})
		var invalid *stream.InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("New(%q) = %v, want a *stream.InvalidError", collection, err)
		}
		for _, want := range []string{"collection", `"processes"`, `"interfaces"`, `"mounts"`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("New(%q): %q does not name %s", collection, err, want)
			}
		}
	}
}

func TestNewChecksTheInterval(t *testing.T) {
	for _, interval := range []time.Duration{-1, time.Millisecond, MinInterval - 1} {
		if _, err := New(Config{Collection: Mounts, Interval: interval}); err == nil {
			t.Errorf("New took an interval of %v", interval)
		}
	}
	if _, err := New(Config{Collection: Mounts, Interval: MinInterval}); err != nil {
		t.Error(err)
	}
	if s := mustNew(t, Mounts); s.interval != DefaultInterval {
		t.Errorf("interval is %v, want %v", s.interval, DefaultInterval)
	}
}

func TestEpoch(t *testing.T) {
	a, b := mustNew(t, Mounts).epoch, mustNew(t, Mounts).epoch
	if a == b {
		t.Errorf("two sources have the epoch %q", a)
	}
	if stream.CanonicalEpoch(a) != a {
		t.Errorf("epoch %q cannot stand in a position", a)
	}
}

// watching is a Watch call in a synctest bubble.
type watching struct {
	t      *testing.T
	cancel context.CancelFunc
	result chan error
}

func startWatch(t *testing.T, s *Source, resume stream.Resume, sink stream.Sink) *watching {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watching{t: t, cancel: cancel, result: make(chan error, 1)}
	go func() { w.result <- s.Watch(ctx, resume, sink) }()
	synctest.Wait()
	return w
}

// stop cancels, and requires Watch to end without any time passing.
func (w *watching) stop() {
	w.t.Helper()
	w.cancel()
	w.wantEnd(context.Canceled)
}

func (w *watching) wantEnd(want error) {
	w.t.Helper()
	synctest.Wait()
	select {
	case err := <-w.result:
		if !errors.Is(err, want) {
			w.t.Errorf("Watch returned %v, want %v", err, want)
		}
	default:
		w.t.Fatal("Watch has not returned")
	}
}

func wantCalls(t *testing.T, sink *transcriptSink, want string) {
	t.Helper()
	if got := sink.take(); got != want {
		t.Errorf("calls:\n got %s\nwant %s", got, want)
	}
}

// sleep lets time pass in a bubble, and everything due happen.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWatchSendsOnlyWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, sink := newFakeReader("a=1", "b=1", "c=1"), &transcriptSink{}
		w := startWatch(t, newSource(r, DefaultInterval), stream.Resume{}, sink)
		wantCalls(t, sink, "reset a=1@1 b=1@1 c=1@1 commit@1")

		r.set(nil, "a=1", "b=2", "d=1")
		sleep(DefaultInterval - 1)
		wantCalls(t, sink, "")
		sleep(1)
		wantCalls(t, sink, "-c@2 b=2@2 d=1@2 commit@2")

		r.set(nil, "d=1", "b=2", "a=1") // another order is not a change
		sleep(10 * DefaultInterval)
		wantCalls(t, sink, "")
		if r.reads != 12 {
			t.Errorf("%d polls, want 12", r.reads)
		}

		r.set(nil)
		sleep(DefaultInterval)
		wantCalls(t, sink, "-a@3 -b@3 -d@3 commit@3")
		w.stop()
	})
}

func TestWatchOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &transcriptSink{}
		w := startWatch(t, newSource(&fakeReader{}, DefaultInterval), stream.Resume{}, sink)
		wantCalls(t, sink, "reset commit@1")
		w.stop()
	})
}

func TestSlowPollsLeaveAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeReader{delay: 3 * DefaultInterval}
		w := startWatch(t, newSource(r, DefaultInterval), stream.Resume{}, &transcriptSink{})
		sleep(12*DefaultInterval - 1)
		if r.reads != 3 {
			t.Errorf("%d polls in 12 intervals of which each takes 3, want 3", r.reads)
		}
		w.cancel()
		sleep(r.delay)
		w.wantEnd(context.Canceled)
	})
}

func TestWatchResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, sink := newFakeReader("a=1", "b=1"), &transcriptSink{}
		s := newSource(r, DefaultInterval)
		w := startWatch(t, s, stream.Resume{}, sink)
		w.stop()
		sink.take()

		w = startWatch(t, s, sink.resume, sink)
		wantCalls(t, sink, "commit@2 status in_sync ") // nothing changed, but the sink is informed
		w.stop()

		r.set(nil, "b=2")
		w = startWatch(t, s, sink.resume, sink)
		wantCalls(t, sink, "-a@3 b=2@3 commit@3 status in_sync ")
		w.stop()
	})
}

func TestWatchStartsOverFromAnyOtherPosition(t *testing.T) {
	for name, place := range map[string]func(newest stream.Resume) stream.Resume{
		"nowhere":       func(stream.Resume) stream.Resume { return stream.Resume{} },
		"older":         func(r stream.Resume) stream.Resume { r.Revision--; return r },
		"ahead":         func(r stream.Resume) stream.Resume { r.Revision++; return r },
		"foreign epoch": func(r stream.Resume) stream.Resume { r.Epoch = "other"; return r },
		"no revision":   func(r stream.Resume) stream.Resume { r.Revision = 0; return r },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, sink := newFakeReader("a=1", "b=1"), &transcriptSink{}
				s := newSource(r, DefaultInterval)
				w := startWatch(t, s, stream.Resume{}, sink)
				r.set(nil, "a=2", "b=1")
				sleep(DefaultInterval)
				w.stop()
				sink.take()

				w = startWatch(t, s, place(sink.resume), sink)
				wantCalls(t, sink, "reset a=2@3 b=1@3 commit@3")
				w.stop()
			})
		})
	}
}

// TestASinkThatFails fails each call of a change in turn. Uncommitted changes
// are sent again, and no revision is used twice.
func TestASinkThatFails(t *testing.T) {
	for failAt, again := range map[int]string{
		1: "-a@3 b=2@3 commit@3 status in_sync ",
		2: "-a@3 b=2@3 commit@3 status in_sync ",
		// The sink accepted the Commit, and only then failed: it is at 2,
		// which the source does not know.
		3: "reset b=2@3 commit@3",
	} {
		synctest.Test(t, func(t *testing.T) {
			r, sink := newFakeReader("a=1", "b=1"), &transcriptSink{}
			s := newSource(r, DefaultInterval)
			w := startWatch(t, s, stream.Resume{}, sink)
			r.set(nil, "b=2")
			sink.fail(failAt)
			sleep(DefaultInterval)
			w.wantEnd(errRefused)
			sink.fail(0)

			w = startWatch(t, s, sink.resume, sink)
			wantCalls(t, sink, again)
			w.stop()
		})
	}
}

// TestASnapshotThatFails leaves nothing to resume from, not even the state
// committed before it.
func TestASnapshotThatFails(t *testing.T) {
	for failAt := 1; failAt <= 3; failAt++ {
		synctest.Test(t, func(t *testing.T) {
			sink := &transcriptSink{}
			s := newSource(newFakeReader("a=1"), DefaultInterval)
			startWatch(t, s, stream.Resume{}, sink).stop()
			committed := sink.resume
			sink.fail(failAt)
			startWatch(t, s, stream.Resume{}, sink).wantEnd(errRefused)
			sink.fail(0)
			w := startWatch(t, s, committed, sink)
			if got := sink.take(); !strings.HasPrefix(got, "reset a=1@") {
				t.Errorf("after a failure at call %d: %s, want a snapshot", failAt, got)
			}
			w.stop()
		})
	}
}

func TestAPollThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no such file")
		r, sink := newFakeReader(), &transcriptSink{}
		r.set(broken)
		s := newSource(r, DefaultInterval)
		startWatch(t, s, stream.Resume{}, sink).wantEnd(broken)
		wantCalls(t, sink, "") // and no Reset, for there is no snapshot

		r.set(nil, "a=1")
		w := startWatch(t, s, stream.Resume{}, sink)
		wantCalls(t, sink, "reset a=1@1 commit@1")
		r.set(broken)
		sleep(DefaultInterval)
		w.wantEnd(broken)
		wantCalls(t, sink, "") // and a is not deleted
	})
}

// TestDiffLeavesBefore: the committed state is unchanged until the next Commit.
func TestDiffLeavesBefore(t *testing.T) {
	before, _ := diff(nil, list("a=1", "b=1"))
	after, changes := diff(before, list("b=2"))
	if len(before) != 2 || string(before["b"]) != "1" {
		t.Errorf("before became %s", before)
	}
	if len(after) != 1 || string(after["b"]) != "2" || len(changes) != 2 {
		t.Errorf("after is %s by %v", after, changes)
	}
}
