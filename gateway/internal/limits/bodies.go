package limits

import (
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// Bodies bounds the memory of the bodies of writes.
//
// Static after construction.
type Bodies struct {
	Bytes   *Budget
	refused func() // counts a body that found no room
	retry   func() time.Duration
}

// NewBodies returns a budget of size bytes. refused is called for each body that
// found no room, and retry for the time after which its client may retry.
func NewBodies(size int64, refused func(), retry func() time.Duration) *Bodies {
	return &Bodies{Bytes: NewBudget(size), refused: refused, retry: retry}
}

// Claim claims the room for a body of size bytes, or returns a 503.
func (b *Bodies) Claim(of Client, size int64) (*Claim, *problem.Problem) {
	if c := b.Bytes.TryTake(of, size); c != nil {
		return c, nil
	}
	b.refused()
	p := problem.New(http.StatusServiceUnavailable, "too many bodies are on their way: there is no room for one of %d bytes; come back later", size)
	p.RetryAfter = b.retry()
	return nil, p
}
