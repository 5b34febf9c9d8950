package faults

import (
	"context"
	"time"
)

// pulse measures how late things happen on this machine: a busy one may suspend a
// process for a while, which is not the fault of a subscriber. It returns the
// longest delay of a short wait until ctx ended.
func pulse(ctx context.Context) (worst time.Duration) {
	const beat = 5 * time.Millisecond
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for last := time.Now(); ; last = time.Now() {
		select {
		case <-ctx.Done():
			return worst
		case <-timer.C:
			worst = max(worst, time.Since(last)-beat)
			timer.Reset(beat)
		}
	}
}
