package shard

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWheel checks that every key is returned, not before its deadline unless that
// is far away, and at most two ticks after it.
func TestWheel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, rapid.Int64Range(0, 1e9).Draw(t, "ns"))
		w, deadlines := newWheel(now), map[uint64]time.Time{}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				due := now.Add(time.Duration(rapid.Int64Range(-1, 300).Draw(t, "seconds")) * time.Second)
				w.add(uint64(step), due)
				deadlines[uint64(step)] = due
				if due.Before(now) {
					deadlines[uint64(step)] = now
				}
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, 200_000).Draw(t, "ms")) * time.Millisecond)
			next := w.next()
			looked := w.due(nil, now)
			if len(looked) > 0 && (next.IsZero() || next.Add(-wheelTick).After(now)) {
				t.Fatalf("next returned %v, at %v there were %v", next, now, looked)
			}
			for _, key := range looked {
				if due := deadlines[key]; due.After(now) {
					w.add(key, due) // a wheel goes around
					continue
				}
				delete(deadlines, key)
			}
			for key, due := range deadlines {
				if due.Add(2 * wheelTick).Before(now) {
					t.Fatalf("%d was due at %v and is not returned by %v", key, due, now)
				}
			}
		}
	})
}

func TestWheelIsQuiet(t *testing.T) {
	now := time.Now()
	w := newWheel(now)
	if !w.next().IsZero() {
		t.Error("an empty wheel turns")
	}
	w.add(7, now.Add(time.Second))
	if next := w.next(); next.Before(now.Add(time.Second)) || next.After(now.Add(time.Second+3*wheelTick)) {
		t.Errorf("next is %v after now", next.Sub(now))
	}
	if got := w.due(nil, now.Add(time.Second+3*wheelTick)); !slices.Equal(got, []uint64{7}) || !w.next().IsZero() {
		t.Errorf("due: %v, then %v", got, w.next())
	}
}
