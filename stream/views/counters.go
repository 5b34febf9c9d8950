package views

import (
	"sync/atomic"

	"github.com/watchtide/watchtide/stream/view"
)

// counters count what all views do.
type counters struct {
	evaluations atomic.Uint64
	failures    [view.Failures]atomic.Uint64
}

// evaluated counts one decision about a resource.
func (c *counters) evaluated(err error) {
	c.evaluations.Add(1)
	if f, failed := err.(view.Failure); failed {
		c.failures[f].Add(1)
	}
}
