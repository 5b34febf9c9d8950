package watch

import (
	"cmp"
	"time"
)

// Backoff is how long to wait between attempts to reach an upstream: a random
// time up to a bound that doubles with each attempt ("full jitter"), so that
// replicas do not come back in step.
type Backoff struct {
	// Min is the first bound; 100 ms by default.
	Min time.Duration
	// Max is the largest bound; 30 s by default.
	Max time.Duration
}

func (b Backoff) withDefaults() Backoff {
	b.Min = cmp.Or(b.Min, 100*time.Millisecond)
	b.Max = max(cmp.Or(b.Max, 30*time.Second), b.Min)
	return b
}

// Wait returns the time to wait after so many failed attempts, at least half of
// Min so that a broken upstream is never hammered. draw is a random number, at least 0
// and less than 1.
func (b Backoff) Wait(failures int, draw float64) time.Duration {
	b = b.withDefaults()
	bound := b.Max
	if failures < 32 {
		bound = min(b.Max, b.Min<<max(failures-1, 0))
	}
	if bound <= 0 {
		bound = b.Max
	}
	return b.Min/2 + time.Duration(draw*float64(max(bound-b.Min/2, 1)))
}
