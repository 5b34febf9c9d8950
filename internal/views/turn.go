package views

import (
	"runtime"
	"time"
)

// turn is the time for which a builder works on a job before others have theirs. It works in
// slices, with a pause after each: without pauses, whoever is woken for the subscribers of a
// watch waits until the operating system takes the processor from the builder, which can be
// milliseconds.
//
// Owned by a builder.
type turn struct {
	// Static after construction.
	of   *parent
	ends time.Time

	began time.Time // the slice
	spent int       // since the clock was read last, in the units of the costs of filters
	over  bool
}

const (
	turnLasts  = 20 * time.Millisecond // or a slice longer, pauses included
	pauseLasts = time.Millisecond      // the shortest for which Go sleeps

	slice     = 8 * time.Millisecond
	liveSlice = 200 * time.Microsecond // of a watch that has changed a short while ago
	liveFor   = 100 * time.Millisecond
)

const (
	// yieldAfter is after how much work a slice may end: some 100 µs.
	yieldAfter = 1000
	// entryCosts is the work that any entry makes.
	entryCosts = 10
)

func newTurn(of *parent) *turn {
	now := time.Now()
	return &turn{of: of, ends: now.Add(turnLasts), began: now}
}

// did counts work. It may pause, and the turn may be over then.
func (t *turn) did(work int) {
	if t.spent += work; t.spent >= yieldAfter {
		t.spent, t.over = 0, t.yield() || t.over
	}
}

// yield lets others go first who wait for a processor: what a builder does is never as urgent
// as what they do. It reports whether the turn ends.
func (t *turn) yield() (ends bool) {
	runtime.Gosched()
	now := time.Now()
	lasts := slice
	if t.of.isLive(now) {
		lasts = liveSlice
	}
	if now.Sub(t.began) < lasts {
		return false
	}
	select {
	case <-time.After(pauseLasts):
	case <-t.of.ended:
	}
	t.began = time.Now()
	return t.began.After(t.ends)
}

// changes records that the watch has a new state.
func (p *parent) changes() { p.changed.Store(time.Now().UnixNano()) }

// isLive reports whether it had a new one a short while ago, and so will soon have the next.
func (p *parent) isLive(now time.Time) bool {
	return now.Sub(time.Unix(0, p.changed.Load())) < liveFor
}
