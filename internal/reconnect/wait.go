// Package reconnect has the rule by which clients come back after a connection has
// ended. The client in web/client has the same rule; both are tested with the file
// testdata/waits.json.
package reconnect

import "time"

const (
	base = time.Second
	most = 30 * time.Second
	// Healthy is how long a connection must have lasted for earlier failures to be
	// forgotten. A server that accepts clients and fails at once is not healthy.
	Healthy = time.Minute
)

// Failures returns how many connections in a row have failed, once another one has ended
// that lasted so long; 0: it was never open.
func Failures(before int, lasted time.Duration) int {
	if lasted >= Healthy {
		return 0
	}
	return before + 1
}

// Wait returns the time until the next attempt: what the server asked for, and at least a
// random share of a bound that doubles with each failure ("full jitter"), so that the
// clients of a server that failed do not all come back at once. draw is a random number,
// at least 0 and less than 1.
func Wait(asked time.Duration, failures int, draw float64) time.Duration {
	bound := min(base<<min(failures, 16), most)
	return max(asked, time.Duration(draw*float64(bound)))
}
