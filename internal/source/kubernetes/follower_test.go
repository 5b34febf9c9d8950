package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// primed returns an ended call that has read a and is at 7.
func (f *fake) primed() *run {
	f.t.Helper()
	f.initial, f.head = stalls(line(added, widget("a", 5)), markerAt(7)), replies(200, listOf(7, ""))
	r := f.start(nil)
	r.wantState(7, "a")
	r.stop()
	f.requests()
	return r
}

// TestResume continues without a snapshot. It has caught up when the repeated
// events have arrived: they all become visible at once.
func TestResume(t *testing.T) {
	inBubble(t, func(f *fake) {
		before := f.primed()
		f.head = replies(200, listOf(9, ""))
		f.watch = stalls(line(added, widget("b", 8)), line(deleted, widget("a", 9)), line(added, widget("c", 10)))
		r := f.start(before)
		r.wantState(10, "b", "c")
		r.wantResets(0)
		f.wantRequests("head, watch 7")
		if commits := r.Commits(); len(commits) != 2 || commits[0].Revision != 9 {
			t.Errorf("commits are %+v, want one at 9, where the server was, and one at 10", commits)
		}
		r.stop()
	})
}

// TestResumeOfAQuietCollection: the server may be ahead because of other
// collections.
func TestResumeOfAQuietCollection(t *testing.T) {
	inBubble(t, func(f *fake) {
		before := f.primed()
		f.head = replies(200, listOf(90, ""))
		f.watch = stalls(line(added, widget("b", 8)))
		r := f.start(before)
		r.running()
		if n := len(r.Commits()); n != 0 {
			t.Errorf("%d commits before the watch is quiet, want none", n)
		}
		r.after(250 * time.Millisecond)
		r.wantState(8, "a", "b")
		r.wantResets(0)
		r.stop()
	})
}

// TestResumeBehindTheHistory: both ways in which the server reports it.
func TestResumeBehindTheHistory(t *testing.T) {
	gone := status(410, "Expired", "too old resource version: 7 (50)")
	for name, answer := range map[string]func(f *fake){
		"at once":       func(f *fake) { f.watch = replies(410, gone) },
		"as an event":   func(f *fake) { f.watch = sends(line(failed, gone)) },
		"in the middle": func(f *fake) { f.watch = sends(line(added, widget("lost", 8)), line(failed, gone)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				before := f.primed()
				f.head = replies(200, listOf(60, ""))
				f.initial = stalls(line(added, widget("b", 40)), markerAt(60))
				answer(f)
				r := f.start(before)
				r.wantState(60, "b")
				r.wantResets(1)
				f.wantRequests("head, watch 7, initial")
				if r.Resume().Epoch != before.Resume().Epoch {
					t.Error("another epoch, although the order is the same")
				}
				r.stop()
			})
		})
	}
}

// TestHistoryIsLostWhileResuming: the watch reports meanwhile that it is not
// fresh.
func TestHistoryIsLostWhileResuming(t *testing.T) {
	inBubble(t, func(f *fake) {
		gone := line(failed, status(410, "Expired", "too old resource version"))
		f.initial = inTurn(sends(line(added, widget("a", 5)), markerAt(7), line(added, widget("b", 8)), gone),
			stalls(line(added, widget("b", 8)), markerAt(20)))
		f.head = replies(200, listOf(20, ""))
		r := f.start(nil)
		r.wantState(20, "b")
		r.wantResets(2)
		said := r.Statuses()
		if len(said) != 2 || said[0].State != stream.Resyncing || said[1].State != stream.InSync {
			t.Errorf("its statuses are %v, want resyncing and in_sync", said)
		}
		r.stop()
	})
}

// TestHistoryShorterThanAList: retrying immediately would loop forever.
func TestHistoryShorterThanAList(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.source.paged = true
		f.list = replies(200, listOf(7, "", widget("a", 5)))
		f.watch = sends(line(failed, status(410, "Expired", "too old resource version")))
		if err := f.start(nil).end(); !errors.Is(err, stream.ErrUnresumable) {
			t.Errorf("error %v, want one that wraps %q", err, stream.ErrUnresumable)
		}
		f.wantRequests("head, list, watch 7")
	})
}

// TestWatchThatRanOut: it resumes in the same call, without a status.
func TestWatchThatRanOut(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.source.config.watchFor = 30 * time.Second
		f.head = replies(200, listOf(8, ""))
		ended := make(chan struct{})
		f.initial = runsOut(ended, line(added, widget("a", 5)), markerAt(7), line(added, widget("b", 8)))
		f.watch = inTurn(runsOut(ended), stalls(line(added, widget("c", 9))))
		r := f.start(nil)
		r.wantState(8, "a", "b")
		for range 2 {
			r.after(30 * time.Second)
			ended <- struct{}{}
		}
		r.running()
		r.wantState(9, "a", "b", "c")
		r.wantResets(1)
		f.wantRequests("head, initial, head, watch 8, head, watch 8")
		if n := len(r.Statuses()); n != 0 {
			t.Errorf("%d statuses, want none", n)
		}
		r.stop()
	})
}

// TestWatchThatEndsAtOnce: it is left to ingest's back-off.
func TestWatchThatEndsAtOnce(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.initial = sends(line(added, widget("a", 5)), markerAt(7))
		if err := f.start(nil).end(); err != nil {
			t.Errorf("error %v, want none: the server ended the watch in good order", err)
		}
		f.wantRequests("head, initial")
	})
}

// TestWatchThatNeverEnds: the server's time limit has passed, and it is silent.
func TestWatchThatNeverEnds(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.source.config.watchFor = 30 * time.Second
		f.initial = stalls(markerAt(7))
		began := time.Now()
		err := f.start(nil).end()
		if !errors.Is(err, stream.ErrStalled) {
			t.Errorf("error %v, want one that wraps %q", err, stream.ErrStalled)
		}
		if took := time.Since(began); took != 30*time.Second+DefaultStallAfter {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAnswerThatNeverComes(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.source.paged, f.head = true, stalls()
		if err := f.start(nil).end(); !errors.Is(err, stream.ErrStalled) || !strings.Contains(err.Error(), "no answer within 1m0s") {
			t.Errorf("error %v, want one that wraps %q", err, stream.ErrStalled)
		}
	})
}

func TestBookmarkOfThePast(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.initial = stalls(markerAt(7), bookmarkAt(6))
		if err := f.start(nil).end(); !errors.Is(err, stream.ErrOrder) {
			t.Errorf("error %v, want one that wraps %q", err, stream.ErrOrder)
		}
	})
}

// TestServerThatWentBack: its head is below an earlier one. A watch from
// there would be silent forever.
func TestServerThatWentBack(t *testing.T) {
	inBubble(t, func(f *fake) {
		before := f.primed()
		f.head = replies(200, listOf(3, ""))
		f.initial = stalls(line(added, widget("b", 2)), markerAt(3))
		r := f.start(before)
		r.wantState(3, "b")
		r.wantResets(1)
		epoch := r.Resume().Epoch
		if was := before.Resume().Epoch; epoch == was || !strings.HasPrefix(epoch, was+"~") || stream.CanonicalEpoch(epoch) != epoch {
			t.Errorf("epoch is %q after %q, want that with a suffix", epoch, was)
		}
		r.stop()
		f.requests()
		f.watch = stalls()
		r = f.start(r) // the suffix stays
		r.after(time.Second)
		r.wantState(3, "b")
		f.wantRequests("head, watch 3")
		r.stop()
		f.source.epochs = epochs{} // in another process too
		f.requests()
		r = f.start(r)
		r.after(time.Second)
		f.wantRequests("head, watch 3")
		r.wantResets(0)
		r.stop()
	})
}

// TestSinkThatRefusesTheOrder: the server has passed its earlier revision, but
// with other objects. Only a sink that has them can detect that.
func TestSinkThatRefusesTheOrder(t *testing.T) {
	inBubble(t, func(f *fake) {
		before := f.primed()
		f.head = replies(200, listOf(7, ""))
		r := f.start(nil)
		r.Fail(stream.ErrBehind)
		if err := r.end(); err != stream.ErrBehind {
			t.Errorf("error %v, want the sink's", err)
		}
		r = f.start(nil)
		r.wantState(7, "a")
		if r.Resume().Epoch == before.Resume().Epoch {
			t.Error("the epoch is the same as before")
		}
		r.stop()
	})
}

// TestAnotherCluster at the same address is another order, whatever its revision.
func TestAnotherCluster(t *testing.T) {
	inBubble(t, func(f *fake) {
		before := f.primed()
		f.cluster = replies(200, `{"metadata":{"uid":"cluster-2"}}`)
		f.initial = stalls(line(added, widget("b", 70)), markerAt(90))
		r := f.start(before)
		r.wantState(90, "b")
		r.wantResets(1)
		if r.Resume().Epoch == before.Resume().Epoch {
			t.Error("the epoch is the same as before")
		}
		r.stop()
	})
}

// TestClusterThatReturns: a backup is restored after another cluster was in its
// place. The old name of its order was used for changes that are gone.
func TestClusterThatReturns(t *testing.T) {
	inBubble(t, func(f *fake) {
		before := f.primed()
		first := f.cluster
		f.cluster = replies(200, `{"metadata":{"uid":"cluster-2"}}`)
		between := f.start(before)
		between.wantState(7, "a")
		between.stop()
		f.cluster, f.head, f.initial = first, replies(200, listOf(3, "")), stalls(markerAt(3))
		r := f.start(between)
		r.wantState(3)
		if e := r.Resume().Epoch; e == before.Resume().Epoch || e == between.Resume().Epoch {
			t.Errorf("epoch %q again, of which %d was served", e, before.Resume().Revision)
		}
		r.stop()
	})
}
