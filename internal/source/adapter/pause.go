package adapter

import (
	"context"
	"time"
)

// PauseFor waits for a time. It returns why ctx has ended, if it has.
func PauseFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// PauseUntil waits until a time. It returns why ctx has ended, if it has.
//
// A source whose upstream requested a wait waits at the start of the next Watch
// call, and not at the end of this one: by then ingest has reported that the
// upstream is lost.
func PauseUntil(ctx context.Context, t time.Time) error { return PauseFor(ctx, time.Until(t)) }
