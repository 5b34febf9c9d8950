package views

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTurnPauses: a builder sleeps after each slice, and earlier when its watch has changed,
// but works for a while in between, however often that is.
func TestTurnPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Config{})
		f.commit(`a={"n":1}`)
		turn := newTurn(f.base)
		for _, c := range []struct {
			worked  time.Duration
			changes bool
			pauses  bool
		}{
			{0, false, false},
			{leastSlice, false, false},
			{0, true, true},
			{0, false, false},
			{leastSlice - 1, true, false},
			{1, false, true},
			{leastSlice, false, false},
			{mostSlice - leastSlice, false, true},
		} {
			if c.changes {
				f.commit(`a={"n":1}`)
			}
			time.Sleep(c.worked)
			began := time.Now()
			if turn.yield() {
				t.Errorf("%+v: the turn ends", c)
			}
			want := time.Duration(0)
			if c.pauses {
				want = pauseLasts
			}
			if got := time.Since(began); got != want {
				t.Errorf("%+v: a pause of %v, want %v", c, got, want)
			}
		}
		time.Sleep(turnLasts)
		if !turn.yield() {
			t.Error("the turn does not end")
		}
	})
}
