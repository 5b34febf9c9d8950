package unary

import (
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// MaxPageSize is the most resources in one page.
const MaxPageSize = 10000

// MaxValue is the largest value that a write may carry, in bytes, over HTTP and over
// gRPC. A source may accept less.
const MaxValue = 16 << 20

// ValueLimit returns the largest value that a write to a watch may carry, in bytes.
func ValueLimit(w *watch.Watch) int64 {
	if l, limits := w.Writer().(stream.ValueLimiter); limits {
		return min(l.MaxValueBytes(), MaxValue)
	}
	return MaxValue
}

// BodyTimeout is how long the whole body of a request may take to arrive, so that no
// client holds a connection with a body that never ends.
const BodyTimeout = 30 * time.Second
