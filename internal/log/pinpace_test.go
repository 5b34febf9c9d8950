package log

import (
	"github.com/watchtide/watchtide/internal/storage"
	"testing"
	"testing/synctest"
	"time"
)

// paced is a reader inside a snapshot of a watch that has changed since.
type paced struct {
	*follower
	t *testing.T
	l *Writer
}

func newPaced(t *testing.T, rate int64) *paced {
	l := NewWriter(Config{Watch: "w"})
	mustReplace(t, l, "e", 2000, larges(2000, 4000)...)
	inSync(l)
	r := &paced{&follower{s: l.Subscribe(SubscribeOptions{MinRate: rate}), state: map[string]uint64{}}, t, l}
	t.Cleanup(r.s.Close)
	r.flush() // the reset
	r.flush()
	return r
}

// pass lets time pass, and the checks that are due then.
func (r *paced) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// keeps checks whether the reader still has its version.
func (r *paced) keeps(want bool) {
	r.t.Helper()
	if got := r.s.pin.Version() != nil; got != want {
		r.t.Errorf("the reader has its version: %t, want %t", got, want)
	}
}

// TestReadersBelowTheLeastRate lose the version that they pin.
func TestReadersBelowTheLeastRate(t *testing.T) {
	const rate = 4 << 10
	for name, test := range map[string]func(r *paced){
		"one that takes nothing": func(r *paced) {
			r.pass(40 * time.Second) // a flush of 64 KiB is worth 16 s
			r.keeps(true)
			r.pass(15 * time.Second)
			r.keeps(false)
			for r.flush() {
			}
			if r.renewed != 1 || !r.s.CaughtUp() {
				r.t.Errorf("got catching_up %d times; caught up: %t", r.renewed, r.s.CaughtUp())
			}
		},
		"one that takes half of the rate": func(r *paced) {
			for range 5 {
				r.pass(32 * time.Second)
				r.flush()
			}
			if r.renewed == 0 {
				r.t.Error("it keeps its version")
			}
		},
		"one that was fast, and stalls": func(r *paced) {
			for range 50 {
				r.flush()
			}
			r.pass(55 * time.Second)
			r.keeps(false)
		},
		"one that takes enough": func(r *paced) {
			for range 20 {
				r.pass(14 * time.Second)
				r.keeps(true)
				r.flush()
			}
		},
		"one that takes enough in leaps": func(r *paced) {
			for range 10 {
				r.pass(28 * time.Second)
				r.keeps(true)
				r.flush()
				r.flush()
			}
		},
		"one that waits for its turn": func(r *paced) {
			r.s.Pause("others are before it")
			r.flush()
			r.pass(time.Hour)
			r.keeps(true)
			r.s.Unpause()
			r.flush()
			r.pass(40 * time.Second)
			r.keeps(true)
			r.pass(15 * time.Second)
			r.keeps(false)
		},
		"one that takes enough of another watch": func(r *paced) {
			for range 20 {
				r.pass(14 * time.Second)
				r.keeps(true)
				r.s.Moved(storage.FlushSize)
			}
			r.pass(time.Minute)
			r.keeps(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newPaced(t, rate)
				mustCommit(t, r.l, 2001, large("k1", 2001, 10))
				test(r)
			})
		})
	}
}

// TestReadersThatMayBeSlow keep their version.
func TestReadersThatMayBeSlow(t *testing.T) {
	for name, c := range map[string]struct {
		rate    int64
		changes bool
	}{
		"no least rate":     {rate: 0, changes: true},
		"none, in gateways": {rate: -1, changes: true},
		"nothing is newer":  {rate: 4 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newPaced(t, c.rate)
				if c.changes {
					mustCommit(t, r.l, 2001, large("k1", 2001, 10))
				}
				r.pass(time.Hour)
				r.keeps(true)
			})
		})
	}
}

// TestSlowReaderOfOneValue: a flush may take as long as its bytes do at the minimum
// rate.
func TestSlowReaderOfOneValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewWriter(Config{Watch: "w"})
		mustReplace(t, l, "e", 9, larges(9, 4<<20)...)
		r := &paced{&follower{s: l.Subscribe(SubscribeOptions{MinRate: 4 << 10}), state: map[string]uint64{}}, t, l}
		defer r.s.Close()
		r.flush() // the reset
		r.flush()
		mustCommit(t, l, 10, large("k8", 10, 10))
		r.pass(1024 * time.Second)
		r.keeps(true)
		r.pass(time.Minute)
		r.keeps(false)
	})
}
