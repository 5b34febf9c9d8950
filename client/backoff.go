package client

import (
	"math/rand/v2"
	"time"

	"github.com/watchtide/watchtide/internal/reconnect"
)

// backoff computes the wait before the next connection.
//
// Owned by Follow.
type backoff struct {
	failures int // in a row
}

// next returns the wait after a connection.
func (b *backoff) next(e reconnect.End) time.Duration {
	b.failures = reconnect.Failures(b.failures, e)
	return reconnect.Wait(e, b.failures, rand.Float64())
}
