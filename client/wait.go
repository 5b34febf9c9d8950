package client

import "time"

const (
	base = time.Second
	most = 30 * time.Second
	// Healthy is how long a connection must have lasted for earlier failures to be
	// forgotten. A server that accepts clients and fails at once is not healthy.
	Healthy = time.Minute
	// used is how long a connection must have lasted for a goodbye to be a move. A
	// server that says goodbye at once, again and again, makes its clients back off.
	used = time.Second
	// overloaded is the goodbye that is a refusal.
	overloaded = "overloaded"
)

// End is how a connection ended.
type End struct {
	Lasted  time.Duration // since its hello; 0: it had none
	Goodbye string        // the reason; empty: there was none
	Asked   time.Duration // the time after which the server wants the client back; 0: it named none
}

// moved reports whether the server has sent the client elsewhere in good order. Servers
// spread the times that they name, so the client adds nothing to them.
func (e End) moved() bool {
	return e.Goodbye != "" && e.Goodbye != overloaded && e.Asked > 0 && e.Lasted >= used
}

// Failures returns how many connections in a row have failed, once another one has ended.
// A move is no failure, and no success either.
func Failures(before int, e End) int {
	switch {
	case e.Lasted >= Healthy:
		return 0
	case e.moved():
		return before
	}
	return before + 1
}

// Backoff returns the time until the next attempt. After a move it is what the server asked
// for. Otherwise it is also at least a random share of a bound that doubles with each
// failure ("full jitter"), so that the clients of a server that failed do not all come
// back at once. draw is a random number, at least 0 and less than 1.
func Backoff(e End, failures int, draw float64) time.Duration {
	if e.moved() {
		return e.Asked
	}
	bound := min(base<<min(failures, 16), most)
	return max(e.Asked, time.Duration(draw*float64(bound)))
}
