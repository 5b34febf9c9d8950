package views

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTurnPauses: a builder sleeps after each slice, and sooner if its watch has changed a
// short while ago.
func TestTurnPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.open(filter(t, `value.n == 1`), "c")
		f.commit(`a={"n":1}`)
		p := f.views.watches[f.base]
		for name, c := range map[string]struct {
			rests time.Duration // the watch, before the turn
			slice time.Duration
		}{"live": {0, liveSlice}, "quiet": {liveFor, slice}} {
			f.commit(`a={"n":1}`)
			time.Sleep(c.rests)
			turn := newTurn(p)
			for range 2 { // a turn has no more of the longer ones
				time.Sleep(c.slice - time.Nanosecond)
				expectPause(t, name, turn, 0)
				time.Sleep(time.Nanosecond)
				expectPause(t, name, turn, pauseLasts)
			}
			time.Sleep(turnLasts)
			if !turn.yield() {
				t.Errorf("%s: the turn does not end", name)
			}
		}
	})
}

// expectPause: a builder that yields sleeps for so long, and its turn goes on.
func expectPause(t *testing.T, name string, turn *turn, want time.Duration) {
	t.Helper()
	began := time.Now()
	if ends := turn.yield(); ends || time.Since(began) != want {
		t.Errorf("%s: a pause of %v, want %v; the turn ends: %v", name, time.Since(began), want, ends)
	}
}
