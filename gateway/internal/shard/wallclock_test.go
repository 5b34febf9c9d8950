package shard

import (
	"testing"
	"time"
	"unsafe"
)

// TestTheWallClockIsSet checks that a deadline in a minute is due in a minute,
// however the wall clock is set meanwhile.
func TestTheWallClockIsSet(t *testing.T) {
	now := time.Now()
	w := newWheel(now)
	w.add(1, now.Add(time.Minute))
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		if keys := w.due(nil, stepped(t, now, step)); len(keys) != 0 {
			t.Errorf("the wall clock was set by %v: %v is due at once", step, keys)
		}
	}
	if keys := w.due(nil, stepped(t, now.Add(time.Minute+2*wheelTick), -time.Hour)); len(keys) != 1 {
		t.Errorf("the wall clock was set back: %v is due after a minute", keys)
	}
}

// stepped returns the same moment after the wall clock was set: it differs only in
// the wall clock's reading.
func stepped(t *testing.T, at time.Time, by time.Duration) time.Time {
	t.Helper()
	after := at
	// Seconds are above 30 bits of nanoseconds; see the source of time.Time.
	*(*uint64)(unsafe.Pointer(&after)) += uint64(int64(by/time.Second) << 30)
	if after.Sub(at) != 0 || after.Round(0).Sub(at.Round(0)) != by {
		t.Fatalf("%v did not become a time with another wall clock: %v", at, after)
	}
	return after
}
