package limits

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// nobody is an observer that looks at nothing.
type nobody struct{}

func (nobody) WaitedForSnapshot(time.Duration) {}
func (nobody) SnapshotsNow(int64, int)         {}

// queued is a stream of the model: its lease, and the size that it requested.
type queued struct {
	claim *SnapshotClaim
	bytes int64
	whole bool
	slow  bool // it lost the lease before
	calls int
}

// budgetWorld pairs a budget with lists of its streams and of those that should wait.
type budgetWorld struct {
	budget  *SnapshotBudget
	all     []*queued
	waiting []*queued // in the order in which they came
}

func (w *budgetWorld) held() (n int, bytes int64) {
	for _, q := range w.all {
		if q.claim.in == &w.budget.held {
			n, bytes = n+1, bytes+q.bytes
		}
	}
	return n, bytes
}

// settle removes the streams that ended or have a lease now from the queue, and
// checks that none was passed by another of its kind.
func (w *budgetWorld) settle(t *rapid.T) {
	type kind struct{ whole, slow bool }
	still := map[kind]bool{} // whether a stream of the kind still waits
	for _, q := range w.waiting {
		of := kind{q.whole && !q.slow, q.slow}
		waits := w.waits(q)
		if !waits && q.claim.in != nil && still[of] {
			t.Fatal("one that came later passed")
		}
		still[of] = still[of] || waits
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(q *queued) bool { return !w.waits(q) })
}

func (w *budgetWorld) waits(q *queued) bool {
	return q.claim.in == &w.budget.resumes || q.claim.in == &w.budget.wholes || q.claim.in == &w.budget.slow
}

func (w *budgetWorld) check(t *rapid.T) {
	if w.budget.review != nil {
		w.budget.review.Stop() // "stall" does it, and nothing else: this takes no lock
	}
	w.settle(t)
	n, bytes := w.held()
	if bytes != w.budget.Used {
		t.Fatalf("%d bytes are taken, the budget says %d", bytes, w.budget.Used)
	}
	if bytes > w.budget.Size && n > 1 {
		t.Fatalf("%d bytes are taken of %d", bytes, w.budget.Size)
	}
	if n == 0 && len(w.waiting) > 0 {
		t.Fatal("a stream waits although there is room")
	}
	if got := w.budget.Waiting(); got != len(w.waiting) {
		t.Fatalf("%d wait, the budget says %d", len(w.waiting), got)
	}
}

// TestSnapshotBudget plays random streams, and ends all of them at the end: nothing
// is ever lost, and no stream passes another of its kind.
func TestSnapshotBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &budgetWorld{budget: NewSnapshotBudget(rapid.Int64Range(1, 1000).Draw(t, "size"), nobody{})}
		any := func(t *rapid.T) *queued {
			if len(w.all) == 0 {
				t.Skip("there is no stream")
			}
			return rapid.SampledFrom(w.all).Draw(t, "who")
		}
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				q := &queued{bytes: rapid.Int64Range(1, 300).Draw(t, "bytes"), whole: rapid.Bool().Draw(t, "whole")}
				q.claim = &SnapshotClaim{Granted: func() { q.calls++ }}
				q.bytes = min(q.bytes, w.budget.Size)
				w.all = append(w.all, q)
			},
			"ask": func(t *rapid.T) {
				q := any(t)
				fresh, called := q.claim.in == nil, q.calls
				if fresh {
					q.slow = q.claim.slow
				}
				got := w.budget.Ask(q.claim, 1, q.bytes, q.whole)
				if fresh && !got {
					w.waiting = append(w.waiting, q)
				}
				if fresh && got != (q.calls == called+1) {
					t.Fatal("the answer and the call differ")
				}
			},
			"leave": func(t *rapid.T) { w.budget.Release(any(t).claim) },
			"move":  func(t *rapid.T) { any(t).claim.moved.Store(true) },
			"stall": func(t *rapid.T) {
				for p := w.budget.held.first; p != nil; p = p.next {
					p.since = p.since.Add(-reviewEvery)
				}
				w.budget.takeBackIdle()
			},
			"": w.check,
		})
		for _, q := range w.all {
			w.budget.Release(q.claim)
			w.check(t)
		}
		if w.budget.Used != 0 || w.budget.Waiting() != 0 {
			t.Fatalf("%d bytes and %d streams are left", w.budget.Used, w.budget.Waiting())
		}
		if w.budget.review != nil {
			w.budget.review.Stop()
		}
	})
}

// TestSlowStreamsTakeLittle checks that streams that lost their leases take every
// fourth lease while others wait, with or without a position, and all leases if none
// wait.
func TestSlowStreamsTakeLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewSnapshotBudget(1, nobody{})
		var order []byte
		var last *SnapshotClaim
		come := func(slow, whole bool, name byte) {
			s := &SnapshotClaim{slow: slow}
			s.Granted = func() { order, last = append(order, name), s }
			b.Ask(s, 1, 1, whole)
		}
		come(false, true, 'f')
		for range 5 {
			come(true, false, 't')
		}
		for range 4 {
			come(false, true, 's')
		}
		come(false, false, 'r')
		for range 11 {
			b.Release(last)
		}
		if got := string(order); got != "frsstsstttt" {
			t.Errorf("they got leases in the order %s", got)
		}
		time.Sleep(2 * reviewEvery)
	})
}

// TestSlowStreamProgressesAgain checks that a stream that lost its lease, and
// progresses once it has another, no longer counts as slow.
func TestSlowStreamProgressesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewSnapshotBudget(1, nobody{})
		trickles, waits := &SnapshotClaim{Granted: func() {}}, &SnapshotClaim{Granted: func() {}}
		b.Ask(trickles, 1, 1, true)
		b.Ask(waits, 1, 1, true)
		time.Sleep(2 * reviewEvery)
		is := func(p *SnapshotClaim) (slow, held bool) {
			b.Mu.Lock()
			defer b.Mu.Unlock()
			return p.slow, p.in == &b.held
		}
		if slow, held := is(trickles); !slow || held {
			t.Fatal("the lease of a stream without progress was not taken back")
		}
		b.Ask(trickles, 1, 1, true)
		b.Release(waits)
		b.Ask(waits, 1, 1, true)
		trickles.moved.Store(true)
		time.Sleep(reviewEvery + reviewEvery/2)
		if slow, held := is(trickles); slow || !held {
			t.Error("it progresses, and counts as slow")
		}
		b.Release(trickles)
		b.Release(waits)
		time.Sleep(2 * reviewEvery)
	})
}

// TestWholeSnapshotsAreNotStarved checks that streams with a position, which pass
// first, do not starve them.
func TestWholeSnapshotsAreNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewSnapshotBudget(1, nobody{})
		first := &SnapshotClaim{Granted: func() {}}
		b.Ask(first, 1, 1, true)
		var order []byte
		var last *SnapshotClaim
		come := func(whole bool, name byte) {
			s := &SnapshotClaim{}
			s.Granted = func() { order, last = append(order, name), s }
			b.Ask(s, 1, 1, whole)
		}
		for range 3 {
			come(true, 's')
		}
		for range 8 {
			come(false, 'r')
		}
		b.Release(first)
		for range 10 {
			b.Release(last)
		}
		b.Release(last)
		if got := string(order); got != "rrrsrrrsrrs" {
			t.Errorf("they got leases in the order %s", got)
		}
		time.Sleep(2 * reviewEvery) // none wait: nothing is reviewed any longer
	})
}
