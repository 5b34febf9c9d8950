package client

import (
	"math/rand/v2"
	"time"
)

const (
	defaultRetry = time.Second
	minRetry     = 100 * time.Millisecond
	maxBackoff   = 30 * time.Second
)

// backoff computes the wait before the next connection: with full jitter, so
// that clients that lost the server together do not reconnect together.
//
// Owned by Follow.
type backoff struct {
	base     time.Duration // what the server requested with retry:
	attempts int           // in a row, without success
}

// next returns a random time up to the base, twice the base, four times … and
// counts an attempt.
func (b *backoff) next() time.Duration {
	base := min(max(b.base, minRetry), maxBackoff)
	most := min(base<<min(b.attempts, 16), maxBackoff)
	b.attempts++
	return rand.N(most) + 1
}

// succeeded starts over from the base.
func (b *backoff) succeeded() { b.attempts = 0 }
