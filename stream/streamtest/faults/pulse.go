package faults

import (
	"context"
	"time"
)

// pulse measures how much later than they should things happen on this machine: a
// busy one lets a process stand still for a while, which no subscriber can help.
// It returns the longest delay of a short wait until ctx ended.
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
