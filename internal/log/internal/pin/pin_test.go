package pin

import (
	"cmp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
)

// TestMemoryIsCountedOnce, however many pins hold it, and for as long as one does.
func TestMemoryIsCountedOnce(t *testing.T) {
	account := memory.NewAccount(1<<30, nil)
	s := newSet(account)
	wants := func(want int64) {
		t.Helper()
		if got := s.Held(); got != want || account.Own().Superseded() != want {
			t.Errorf("%d bytes are held, and %d counted; want %d", got, account.Own().Superseded(), want)
		}
	}
	first, again := s.Add(&storage.Version{Number: 1}, 0), s.Add(&storage.Version{Number: 1}, 0)
	s.Advance(2, []Retired{{Born: 1, Bytes: 100}}, 0, 1)
	wants(100)
	second := s.Add(&storage.Version{Number: 2}, 0)
	s.Advance(3, []Retired{{Born: 1, Bytes: 10}, {Born: 2, Bytes: 1}}, 0, 1)
	s.Advance(4, []Retired{{Born: 3, Bytes: 1000}}, 0, 1)
	wants(111) // no pinned version has what was born with 3
	s.Release(first)
	wants(111)
	s.Release(again)
	wants(11)
	s.Release(second)
	wants(0)
	if n := s.Eras(); n != 1 {
		t.Errorf("%d eras are left", n)
	}
	if s.Add(&storage.Version{Number: 2}, 0) != nil {
		t.Error("a version is pinned of which memory was retired uncounted")
	}
}

// TestPinAgain: another reader of the same version holds the same memory, also if a newer
// version has retired some, but not after the first one lost it.
func TestPinAgain(t *testing.T) {
	s := newSet(memory.NewAccount(1<<30, nil))
	first := s.Add(&storage.Version{Number: 1}, 0)
	s.Advance(2, []Retired{{Born: 1, Bytes: 100}}, 0, 1)
	second := s.Again(first)
	if s.Release(first); second.Version() == nil || s.Held() != 100 {
		t.Errorf("pinned again: %t; %d bytes are held", second.Version() != nil, s.Held())
	}
	if s.TakeAll(); second.Version() != nil || s.Held() != 0 {
		t.Errorf("the version is still there: %t; %d bytes are held", second.Version() != nil, s.Held())
	}
	if s.Again(second) != nil || s.Again(nil) != nil {
		t.Error("a version is pinned again that was taken away")
	}
}

// TestOldestIsTakenFirst: its reader finds out that its version is gone.
func TestOldestIsTakenFirst(t *testing.T) {
	s := newSet(memory.NewAccount(1<<30, nil))
	first := s.Add(&storage.Version{Number: 1}, 0)
	s.Advance(2, []Retired{{Born: 1, Bytes: 100}}, 0, 1)
	second := s.Add(&storage.Version{Number: 2}, 0)
	s.Advance(3, []Retired{{Born: 2, Bytes: 10}}, 0, 1)
	if !s.TakeOldest() || first.Version() != nil || second.Version() == nil || s.Held() != 10 {
		t.Errorf("the oldest is there: %t; the other: %t; %d bytes are held", first.Version() != nil, second.Version() != nil, s.Held())
	}
	s.TakeAll()
	if second.Version() != nil || s.Held() != 0 || s.TakeOldest() {
		t.Error("not all was taken")
	}
	s.Release(second) // it has ended already
}

// TestSurplusLeavesOneVersion to its readers: the oldest for a while, and then the next one. One that
// is kept for readers that may come is not spared.
func TestSurplusLeavesOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(nil)
		has := func(want string, of ...*Pin) {
			t.Helper()
			got := ""
			for i, one := range of {
				if one.Version() != nil {
					got += string(rune('a' + i))
				}
			}
			if got != want {
				t.Errorf("%q have their versions, want %q", got, want)
			}
		}
		pinned := func(number uint64, add func(*storage.Version) *Pin) *Pin {
			one := add(&storage.Version{Number: number, Seq: number})
			s.Advance(number+1, []Retired{{Born: number, Bytes: 100}}, 0, 1)
			return one
		}
		reader := func(v *storage.Version) *Pin { return s.Add(v, 0) }
		kept, first, second, third := pinned(1, s.Keep), pinned(2, reader), pinned(3, reader), pinned(4, reader)
		for _, step := range []struct {
			most int64
			want string
		}{{300, "abcd"}, {250, "bcd"}, {100, "bd"}, {99, "b"}, {0, "b"}} {
			s.TakeSurplus(step.most)
			has(step.want, kept, first, second, third)
		}
		time.Sleep(spared)
		s.TakeSurplus(0) // no other reader waits
		has("b", kept, first, second, third)
		fourth := pinned(5, reader)
		s.TakeSurplus(0)
		if has("b", first, fourth); s.Held() != 100 {
			t.Errorf("%d bytes are held", s.Held())
		}
	})
}

// TestSurplusLeavesNoVersionToReadersThatTakeNothing, or too little, once others wait for theirs.
func TestSurplusLeavesNoVersionToReadersThatTakeNothing(t *testing.T) {
	for _, test := range []struct {
		rate  int64 // that it must take
		taken int   // each second, of 6000 bytes
		keeps time.Duration
	}{{1, 0, 5 * time.Second}, {1, 60, 11 * time.Second}, {1, 120, spared}, {0, 0, spared}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSet(nil)
			one := s.Add(&storage.Version{Number: 1, Seq: 1, Contents: storage.Contents{Bytes: 6000}}, test.rate)
			s.Advance(2, []Retired{{Born: 1, Bytes: 100}}, 0, 1)
			for kept := time.Duration(0); ; kept += time.Second {
				other := s.Add(&storage.Version{Number: s.newest, Seq: 2}, 0)
				s.Advance(s.newest+1, []Retired{{Born: s.newest, Bytes: 100}}, 0, 1)
				s.TakeSurplus(0)
				if s.Release(other); one.Version() == nil || kept > 2*spared {
					if kept < test.keeps || kept > test.keeps+2*time.Second {
						t.Errorf("%+v: a reader keeps its version for %v", test, kept)
					}
					return
				}
				time.Sleep(time.Second)
				s.Credit(one, test.taken)
			}
		})
	}
}

// TestJoin: a reader that has lost its version gets the newest that another reader has, if that has
// all that it knows of.
func TestJoin(t *testing.T) {
	s := newSet(nil)
	of := func(number uint64) *storage.Version {
		return &storage.Version{Number: number, Seq: 10 * number, Generation: 1}
	}
	if one, v := s.Join(1, 0, 0); one != nil || v != nil {
		t.Error("a version is joined that nobody has")
	}
	first := s.Add(of(1), 0)
	s.Advance(2, []Retired{{Born: 1, Bytes: 100}}, 0, 1)
	s.Add(of(2), 0)
	s.Advance(3, []Retired{{Born: 2, Bytes: 100}}, 0, 1)
	s.Keep(of(3))
	for _, test := range []struct{ generation, seq, want uint64 }{{1, 0, 2}, {1, 20, 2}, {1, 21, 0}, {2, 0, 0}} {
		one, v := s.Join(test.generation, test.seq, 0)
		if got := cmp.Or(v, &storage.Version{}).Number; got != test.want || one.Version() != v {
			t.Errorf("generation %d, seq %d: got version %d, want %d", test.generation, test.seq, got, test.want)
		}
	}
	s.Release(first)
	s.TakeAll()
	if one, _ := s.Join(1, 0, 0); one != nil {
		t.Error("a version is joined that was taken away")
	}
}

// TestBegin: readers that begin within a second begin in the same version, as long as one of them is in it and it suits.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(nil)
		number := uint64(0)
		var readers []*Pin
		for i, test := range []struct {
			after time.Duration
			suits bool
			ended []int // the readers that end before
			want  uint64
		}{
			{0, true, nil, 1}, {BeginsWithin / 2, true, nil, 1}, {BeginsWithin / 2, true, []int{1}, 1},
			{1, true, nil, 4}, // although a reader has begun in the other one a moment before
			{0, false, nil, 5}, {0, true, nil, 5}, {0, true, []int{4, 5}, 4}, {0, true, []int{0, 2, 3}, 4},
			{0, true, []int{6, 7}, 9}, {0, true, nil, 9},
		} {
			time.Sleep(test.after)
			for _, j := range test.ended {
				s.Release(readers[j])
			}
			number++
			one, v := s.Begin(&storage.Version{Number: number}, 0, func(*storage.Version) bool { return test.suits })
			s.Advance(number+1, []Retired{{Born: number, Bytes: 1}}, 0, 1)
			if readers = append(readers, one); v.Number != test.want || one.Version() != v {
				t.Errorf("reader %d begins in version %d, want %d", i, v.Number, test.want)
			}
		}
		s.TakeAll()
		if s.begun != nil {
			t.Error("readers that have lost their version are remembered")
		}
	})
}

// TestSlowPinIsTaken once its reader is below the minimum rate and there is something newer,
// unless the clock is paused.
func TestSlowPinIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(nil)
		slow, paused := s.Add(&storage.Version{Number: 1, Seq: 1}, 1000), s.Add(&storage.Version{Number: 1, Seq: 1}, 1000)
		newest := s.Add(&storage.Version{Number: 2, Seq: 2}, 1000)
		s.Pause(paused)
		s.Credit(slow, 5000)
		time.Sleep(paceWindow + 4*time.Second)
		if synctest.Wait(); slow.Version() == nil {
			t.Error("a reader is not given the time that its bytes are worth")
		}
		time.Sleep(paceEvery + 2*time.Second)
		if synctest.Wait(); slow.Version() != nil || paused.Version() == nil || newest.Version() == nil {
			t.Errorf("the slow one has its version: %t; the paused one: %t; that of the newest state: %t",
				slow.Version() != nil, paused.Version() != nil, newest.Version() != nil)
		}
		s.Release(newest)
		s.Release(paused)
		time.Sleep(paceEvery)
		if synctest.Wait(); s.checking {
			t.Error("checks go on without a reader that has a minimum rate")
		}
	})
}

// newSet returns the set of a log whose newest version is the second.
func newSet(a *memory.Account) *Set {
	head := new(atomic.Pointer[storage.Version])
	head.Store(&storage.Version{Number: 2, Seq: 2})
	return NewSet(a, head)
}
