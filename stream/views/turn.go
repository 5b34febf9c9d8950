package views

import (
	"runtime"
	"time"

	"github.com/watchtide/watchtide/stream/watch"
)

// turn is the time for which a builder works on a job before others have theirs. It works in
// slices, with a pause after each: without pauses, whoever is woken for the subscribers of the
// watch waits until the operating system takes a processor from the builder, which can be
// milliseconds. A slice ends early if the watch has a new state, since that is being sent
// then.
//
// Owned by a builder.
type turn struct {
	// Static after construction.
	of   *watch.Watch
	ends time.Time

	began  time.Time // the slice
	number uint64    // of the newest state of the watch when the last slice ended
}

const (
	turnLasts  = 10 * time.Millisecond // or a slice longer, pauses included
	mostSlice  = 1500 * time.Microsecond
	leastSlice = 500 * time.Microsecond // however often the watch changes
	pauseLasts = time.Millisecond       // the shortest for which Go sleeps
)

// yieldEvery is after how many entries a slice may end.
const yieldEvery = 32

func newTurn(of *watch.Watch) *turn {
	now := time.Now()
	return &turn{of: of, ends: now.Add(turnLasts), began: now, number: of.Snapshot().Number()}
}

// yield lets others go first who wait for a processor: what a builder does is never as urgent
// as what they do. It reports whether the turn ends.
func (t *turn) yield() (ends bool) {
	runtime.Gosched()
	newest, worked := t.of.Snapshot().Number(), time.Since(t.began)
	if worked < leastSlice || worked < mostSlice && newest == t.number {
		return false
	}
	select {
	case <-time.After(pauseLasts):
	case <-t.of.Done():
	}
	t.began, t.number = time.Now(), newest
	return t.began.After(t.ends)
}
