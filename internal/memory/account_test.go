package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// sharing returns accounts that share a ceiling of which logs may have 1,000 bytes;
// the slack is 50.
func sharing(n int) (*Ceiling, []*Account) {
	shared := NewCeiling(2500)
	var all []*Account
	for range n {
		a := NewAccount(0, shared)
		a.Join(noPins{})
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
			err := all[s.who-1].Grow(s.bytes)
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

// TestFixedAccount: what cannot be loaded again is refused before any watch is, beyond half an
// equal share, and is no watch itself.
func TestFixedAccount(t *testing.T) {
	shared, all := sharing(2)
	fixed := NewFixedAccount(shared)
	fixed.Join(noPins{})
	grow := func(a *Account, n int64, granted bool) {
		t.Helper()
		if err := a.Grow(n); (err == nil) != granted {
			t.Errorf("%d bytes beside %d of %d: %v", n, a.log, shared.Logs(), err)
		}
	}
	grow(all[0], 600, true)
	grow(fixed, 350, true)
	grow(fixed, 1, false) // the rest is left to the watches
	grow(all[0], 50, true)
	grow(all[0], 1, false) // it holds the most
	fixed.SetLog(0, 0)
	grow(all[0], 350, true)
	grow(fixed, 250, true) // its share
	if len(all[0].squeezed) == 0 {
		t.Error("the watch that holds the most is not told to give up memory")
	}
	grow(fixed, 1, false)
	grow(all[1], 500, true)
	fixed.Leave()
	fixed.Rejoin()
	fixed.Rejoin()
	if n := shared.number(); n != 2 || len(shared.accounts.all) != 3 {
		t.Errorf("%d accounts are watches of %d", n, len(shared.accounts.all))
	}
	all[0].Leave()
	all[1].Leave()
	if fixed.Leave(); shared.Logs() != 0 || len(shared.accounts.all) != 0 || shared.number() != 0 {
		t.Errorf("%d bytes are counted of nobody", shared.Logs())
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
				if a.Stage(600) == nil {
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

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 3 << 50: "3072.0 TiB",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// noPins is a log without readers of older versions.
type noPins struct{}

func (noPins) Held() int64       { return 0 }
func (noPins) TakeOldest() bool  { return false }
func (noPins) TakeSurplus(int64) {}
func (noPins) TakeAll()          {}

// TestManyAccounts: what it takes to join a ceiling and to leave it does not depend on how
// many share it, and whoever is left is found.
func TestManyAccounts(t *testing.T) {
	const n = 4096
	shared, accounts := NewCeiling(0), make([]*Account, n)
	for i := range accounts {
		accounts[i] = NewUnsqueezedAccount(shared)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, a := range accounts {
		a.Join(noPins{})
		a.SetLog(int64(i), 0)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 256 {
		t.Errorf("%d bytes were allocated for each of %d accounts", each, n)
	}
	for i := range n - 1 {
		accounts[(i*7+1)%n].Leave()
		if left := shared.number(); left != int64(n-1-i) {
			t.Fatalf("%d accounts are left, want %d", left, n-1-i)
		}
	}
	accounts[1].Leave() // again
	if shared.most(logsPool) != accounts[((n-1)*7+1)%n] {
		t.Error("another account is left")
	}
}

// TestSetBytes: another ceiling holds from the next request on.
func TestSetBytes(t *testing.T) {
	shared, accounts := sharing(1)
	if err := accounts[0].Grow(900); err != nil {
		t.Fatal(err)
	}
	shared.SetBytes(2000)
	if err := accounts[0].Grow(1); err == nil {
		t.Error("901 bytes were granted, of 800 at most")
	}
	if accounts[0].LogExceeds() == nil {
		t.Error("the account need not give up its log")
	}
	shared.SetBytes(5000)
	if err := accounts[0].Grow(1100); err != nil {
		t.Error(err)
	}
	shared.SetBytes(0)
	if err := accounts[0].Grow(1 << 40); err != nil {
		t.Error(err)
	}
}

// TestKept checks that what is kept beside a log is counted against both ceilings, has a hundredth
// of each, takes no room from logs, and is given back at the end.
func TestKept(t *testing.T) {
	shared := NewCeiling(2500) // 25 bytes may be kept, of which one watch may have 10
	a, b := NewAccount(1000, shared), NewAccount(0, shared)
	a.Join(noPins{})
	b.Join(noPins{})
	for i, step := range []struct {
		of   *Account
		n    int64
		fits bool
	}{{a, 11, false}, {a, 10, true}, {a, 1, false}, {b, 16, false}, {b, 15, true}, {a, -5, true}, {b, 5, true}, {a, 1, false}} {
		if step.of.Keep(step.n) != step.fits {
			t.Errorf("step %d: it fits: %t", i, !step.fits)
		}
	}
	if a.own.Kept() != 5 || b.own.Kept() != 20 || shared.Kept() != 25 {
		t.Errorf("%d and %d bytes are counted, %d in all", a.own.Kept(), b.own.Kept(), shared.Kept())
	}
	if err := a.Grow(400); err != nil {
		t.Errorf("a log has not all of its room: %v", err)
	}
	a.Supersede(195)
	if a.own.Swollen() {
		t.Error("swollen at the limit")
	}
	if a.Supersede(1); !a.own.Swollen() {
		t.Error("what is kept takes no room from what is superseded")
	}
	a.Supersede(-196)
	a.Leave()
	b.Leave()
	if shared.Kept() != 0 || shared.Logs() != 0 {
		t.Errorf("%d and %d bytes remain", shared.Kept(), shared.Logs())
	}
	if !(*Account)(nil).Keep(1) || !NewAccount(0, nil).Keep(1<<40) {
		t.Error("refused without a ceiling")
	}
}

// TestReserve checks that what others keep counts against both ceilings, from any goroutine, and
// outlasts the account until it is returned.
func TestReserve(t *testing.T) {
	shared := NewCeiling(10_000) // 100 bytes may be kept, of which one watch may have 60
	a, b := NewAccount(6000, shared), NewAccount(6000, shared)
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		for _, account := range []*Account{a, b} {
			all.Go(func() {
				for range 10 {
					if account.Reserve(7) {
						granted.Add(7)
					}
				}
			})
		}
	}
	all.Wait()
	if own := a.Own().Kept(); own > 60 || own+b.Own().Kept() != granted.Load() || shared.Kept() != granted.Load() || granted.Load() > 100 || granted.Load() < 94 {
		t.Errorf("%d and %d bytes of %d, %d granted", own, b.Own().Kept(), shared.Kept(), granted.Load())
	}
	a.Return(a.Own().Kept())
	b.Return(b.Own().Kept())
	if shared.Kept() != 0 || !(*Account)(nil).Reserve(1) {
		t.Errorf("%d bytes are left", shared.Kept())
	}
}

// TestRoomThatIsFreedMeanwhile: a watch that finds no room is not refused for holding the most if that
// is so only because another one has given up its memory since.
func TestRoomThatIsFreedMeanwhile(t *testing.T) {
	for _, p := range []*pool{logsPool, stagedPool} {
		shared, all := sharing(2)
		large, small := all[0], all[1]
		if !p.take(&large.own, 990) || !p.take(shared, 990) {
			t.Fatal("no room for the large one")
		}
		if !p.take(&small.own, 50) || p.take(shared, 50) {
			t.Fatal("room for the small one")
		}
		large.give(p, 990)
		if !small.borrow(p, 50) || p.of(shared).Load() != 50 {
			t.Errorf("refused, with %d bytes of 1000 held", p.of(shared).Load())
		}
		if !p.take(&small.own, 951) || small.borrow(p, 951) || p.of(shared).Load() != 50 {
			t.Errorf("what does not fit is not refused: %d bytes of 1000 are held", p.of(shared).Load())
		}
	}
}

// TestShareWhileOthersGive: a watch within its share is not refused while another one is giving
// memory up: that is no longer its own, and still counts in the shared ceiling. Nor is it if it is
// the only one.
func TestShareWhileOthersGive(t *testing.T) {
	for _, p := range []*pool{logsPool, stagedPool} {
		shared, all := sharing(2)
		p.of(shared).Store(1000) // what the other one gives has left only its own ceiling
		if err := all[0].reserve(p, 500, "it"); err != nil {
			t.Error(err)
		}
		if err := all[0].reserve(p, 1, "it"); err == nil {
			t.Error("the one that holds the most gets more than its share")
		}
		p.of(shared).Add(-1000)
		if got := p.of(shared).Load(); got != 500 || p.of(&all[0].own).Load() != 500 {
			t.Errorf("%d bytes are counted, want 500", got)
		}
	}
}

// TestSharesUnderContention: watches that take and give memory at the same time, and each stay within
// their share, are never refused, and nothing remains counted.
func TestSharesUnderContention(t *testing.T) {
	const watches, rounds = 8, 2000
	for _, p := range []*pool{logsPool, stagedPool} {
		shared, all := sharing(watches)
		var group sync.WaitGroup
		for i, a := range all {
			group.Go(func() {
				for round := range rounds {
					n := int64(1 + (round+i)%(1000/watches))
					if err := a.reserve(p, n, "it"); err != nil {
						t.Error(err)
						return
					}
					a.give(p, n)
				}
			})
		}
		group.Wait()
		if got := p.of(shared).Load(); got != 0 {
			t.Errorf("%d bytes remain", got)
		}
	}
}
