package sourcetest

import (
	"errors"
	"fmt"
	"github.com/watchtide/watchtide/internal/streamtest"

	"github.com/watchtide/watchtide/stream"
)

func conformEmpty(f *fixture) {
	r := f.start(nil)
	f.awaitState(r)
	f.wantSnapshots(r, 1)
}

func conformSnapshot(f *fixture) {
	for i := range 12 {
		f.put(i, i)
	}
	f.delete(3)
	r := f.start(nil)
	f.awaitState(r)
	f.wantSnapshots(r, 1)
	if first := r.Commits()[0]; !valuesOf(first.State).Equal(f.state()) {
		f.t.Errorf("the first Commit is not the whole snapshot: %s", valuesOf(first.State).Diff(f.state()))
	}
}

// conformLive makes one change at a time and waits for it.
func conformLive(f *fixture) {
	f.put(0, 0)
	r := f.start(nil)
	f.awaitState(r)
	for n := range 6 {
		f.put(n%3, n+1)
		f.awaitState(r)
	}
	f.delete(1)
	f.awaitState(r)
	f.wantSnapshots(r, 1)
	f.wantRising(r)
}

func conformRebirth(f *fixture) {
	f.put(0, 0)
	f.put(1, 0)
	r := f.start(nil)
	f.awaitState(r)
	f.delete(0)
	f.awaitState(r)
	f.put(0, 1)
	f.awaitState(r)
}

// conformTransaction fails if a Commit shows one half of a transaction.
func conformTransaction(f *fixture) {
	a, b := f.key(0), f.key(1)
	r := f.start(nil)
	f.awaitState(r)
	for n := range 5 {
		writes := []Write{{Key: a, Value: f.value(a, n)}, {Key: b, Value: f.value(b, n)}}
		f.transaction(writes)
	}
	f.transaction([]Write{{Key: a, Delete: true}, {Key: b, Delete: true}})
	f.awaitState(r)
	for _, c := range r.Commits() {
		_, hasA := c.State[a]
		_, hasB := c.State[b]
		if hasA != hasB || c.State[a].Revision != c.State[b].Revision {
			f.t.Errorf("Commit of %d shows half of a transaction: %v", c.Revision, c.State)
		}
	}
}

func (f *fixture) transaction(writes []Write) {
	f.t.Helper()
	if err := f.Transaction(writes); err != nil {
		f.t.Fatalf("Transaction: %v", err)
	}
	for _, w := range writes {
		if w.Delete {
			delete(f.want, w.Key)
			continue
		}
		f.note(w.Key, w.Value)
	}
}

// conformCancel ends Watch while it is waiting, which must not take long.
func conformCancel(f *fixture) {
	f.put(0, 0)
	r := f.start(nil)
	f.awaitState(r)
	r.stop()
}

// conformSinkError refuses the next change.
func conformSinkError(f *fixture) {
	r := f.start(nil)
	f.awaitState(r)
	refused := errors.New("sink refuses")
	r.Fail(refused)
	f.put(0, 0)
	r.mustEnd(refused)
}

// conformPause makes changes, deletes among them, while there is no Watch.
func conformPause(f *fixture) {
	first := f.populated()
	f.changeALot()
	second := f.start(first)
	f.awaitState(second)
	f.put(5, 50)
	f.awaitState(second)
}

// conformResume is conformPause for an upstream that keeps history, and tries each
// position on the way.
func conformResume(f *fixture) {
	first := f.populated()
	places := []*run{first}
	for n := range 3 {
		r := f.start(places[n])
		f.put(n, 100+n)
		f.delete(n + 1)
		f.awaitState(r)
		r.stop()
		places = append(places, r)
	}
	for _, from := range places {
		r := f.start(from)
		f.awaitState(r)
		f.wantSnapshots(r, 0)
		r.stop()
	}
}

// conformCaughtUp continues from a position far behind, and then from a recent one.
// The source must report that it has caught up, but not before everything that the
// upstream had at its start is committed.
func conformCaughtUp(f *fixture) {
	before := f.populated()
	for n := range 30 {
		f.put(n%6, 200+n)
	}
	f.delete(0)
	for range 2 {
		r := f.start(before)
		f.await(r, func() string {
			if _, ok := r.CaughtUp(); !ok {
				return "neither a snapshot nor Status(InSync) after a Commit, which report that the source has caught up"
			}
			return ""
		})
		at, _ := r.CaughtUp()
		if diff := valuesOf(at.State).Diff(f.state()); diff != "" {
			f.t.Errorf("the source reported at %d that it had caught up, too early: %s", at.Revision, diff)
		}
		r.stop()
		before = r
	}
}

// populated is a run that has seen six resources, and has ended.
func (f *fixture) populated() *run {
	for i := range 6 {
		f.put(i, i)
	}
	r := f.start(nil)
	f.awaitState(r)
	r.stop()
	return r
}

func (f *fixture) changeALot() {
	f.put(0, 10)
	f.delete(1)
	f.delete(2)
	f.put(2, 12)
	f.put(7, 17)
	f.put(8, 18)
	f.delete(8)
}

// conformForeignEpoch resumes from a position that is valid except for the
// epoch.
func conformForeignEpoch(f *fixture) {
	first := f.populated()
	place := first.Resume()
	place.Epoch = "foreign"
	r := f.startAt(place, streamtest.State{"of another order": {Revision: 1, Value: "1"}})
	f.awaitState(r)
	f.wantSnapshots(r, 1)
}

// conformFuture resumes beyond the head: the source must start over or report that
// it cannot continue, but never wait silently.
func conformFuture(f *fixture) {
	first := f.populated()
	place := first.Resume()
	place.Revision += 1 << 20
	r := f.startAt(place, first.State())
	f.await(r, func() string {
		if r.Resets() > 0 || isClosed(r.ended) {
			return ""
		}
		return fmt.Sprintf("no Reset, although the upstream never reached %d", place.Revision)
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// conformSameEpoch reads twice from nothing: a position of one replica must be valid
// at another.
func conformSameEpoch(f *fixture) {
	first := f.populated()
	f.put(0, 20)
	second := f.start(nil)
	f.awaitState(second)
	if a, b := first.Resume().Epoch, second.Resume().Epoch; a != b {
		f.t.Errorf("epoch is %q for one reader and %q for the next, want the same", a, b)
	}
	if a := first.Resume().Epoch; stream.CanonicalEpoch(a) != a {
		f.t.Logf("epoch %q cannot stand in a position and is hashed", a)
	}
}

// conformDisconnect cuts the connection: Watch must return, and the next one must
// continue, with the changes since.
func conformDisconnect(f *fixture) {
	for i := range 6 {
		f.put(i, i)
	}
	first := f.start(nil)
	f.awaitState(first)
	f.Disconnect()
	first.mustEnd(nil)
	f.changeALot()
	second := f.start(first)
	f.awaitState(second)
}

func conformRestart(f *fixture) {
	first := f.populated()
	f.Restart()
	f.put(0, 30)
	second := f.start(first)
	f.awaitState(second)
	if a, b := first.Resume().Epoch, second.Resume().Epoch; a != b {
		f.t.Errorf("epoch was %q before the restart and is %q after it, want the same", a, b)
	}
}

// conformRestore goes back in time: the source must report that by another epoch.
func conformRestore(f *fixture) {
	first := f.populated()
	f.Restore()
	f.want = nil
	f.put(0, 40)
	second := f.start(first)
	f.awaitState(second)
	f.wantSnapshots(second, 1)
	if e := second.Resume().Epoch; e == first.Resume().Epoch {
		f.t.Errorf("epoch is still %q after a restore, want another", e)
	}
}

// wantSnapshots fails unless Reset was called n times.
func (f *fixture) wantSnapshots(r *run, n int) {
	f.t.Helper()
	if got := r.Resets(); got != n {
		f.t.Errorf("Reset was called %d times, want %d", got, n)
	}
}

// wantRising fails if a Commit with changes did not raise the revision, except
// where only deletes happened: an upstream may give them none.
func (f *fixture) wantRising(r *run) {
	f.t.Helper()
	commits := r.Commits()
	for i := 1; i < len(commits); i++ {
		before, after := commits[i-1], commits[i]
		if after.Revision <= before.Revision && len(after.State) >= len(before.State) && !after.State.Equal(before.State) {
			f.t.Errorf("Commit of %d changed something after Commit of %d, want a higher revision", after.Revision, before.Revision)
		}
	}
}
