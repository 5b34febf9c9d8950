package introspection

import "time"

// Times in tables without pointers are nanoseconds, measured from the start of the
// process by the monotonic clock: setting the wall clock neither ends a stream early
// nor delays a heartbeat.
var (
	started      = time.Now()
	startedNanos = started.UnixNano()
)

// Nanos returns 0 for the zero time.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return startedNanos + int64(t.Sub(started))
}

// FromNanos is the inverse of Nanos.
func FromNanos(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return started.Add(time.Duration(nanos - startedNanos))
}
