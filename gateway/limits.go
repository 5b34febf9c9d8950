package gateway

import (
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// maxPageSize is the most resources in one page.
const maxPageSize = 10000

// maxValue is the largest value that a write may carry, in bytes, over HTTP and over
// gRPC. A source may accept less.
const maxValue = 16 << 20

// valueLimit returns the largest value that a write to a watch may carry, in bytes.
func valueLimit(w *watch.Watch) int64 {
	if l, limits := w.Writer().(stream.ValueLimiter); limits {
		return min(l.MaxValueBytes(), maxValue)
	}
	return maxValue
}

// bodyTimeout is how long the whole body of a request may take to arrive, so that no
// client holds a connection with a body that never ends.
const bodyTimeout = 30 * time.Second
