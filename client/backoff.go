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

// next returns the wait after a connection that lasted so long since its hello; 0: it had
// none. asked is what the server asked for; 0: nothing.
func (b *backoff) next(lasted, asked time.Duration) time.Duration {
	b.failures = reconnect.Failures(b.failures, lasted)
	return reconnect.Wait(asked, b.failures, rand.Float64())
}
