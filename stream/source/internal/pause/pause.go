// Package pause waits for a time or the end of a context.
package pause

import (
	"context"
	"time"
)

// For waits for a time. It returns why ctx has ended, if it has.
func For(ctx context.Context, d time.Duration) error {
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

// Until waits until a time. It returns why ctx has ended, if it has.
//
// A source whose upstream requested a wait waits at the start of the next Watch
// call, and not at the end of this one: by then ingest has reported that the
// upstream is lost.
func Until(ctx context.Context, t time.Time) error { return For(ctx, time.Until(t)) }
