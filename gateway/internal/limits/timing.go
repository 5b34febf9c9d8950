package limits

import "time"

// The times of streams are functions of a draw: a random number, at least 0 and less
// than 1.

// goodbyeEvery is the time for each goodbye of a drain, if there are so few that it is over
// early: a hundred clients a second may come back elsewhere.
const goodbyeEvery = 10 * time.Millisecond

// GoodbyeDelay returns how long one of a number of streams stays open after a drain began
// that spreads its goodbyes over the given time; ≤ 0: not at all.
func GoodbyeDelay(spread time.Duration, streams int, draw float64) time.Duration {
	return time.Duration(draw * float64(max(min(spread, time.Duration(streams)*goodbyeEvery), 0)))
}

// RetryHint returns when one client should reconnect: after half to one and a half
// of the configured time, so that clients whose streams ended together do not return
// together.
func RetryHint(retry time.Duration, draw float64) time.Duration {
	return (retry/2 + time.Duration(draw*float64(retry))).Round(time.Millisecond)
}

// Age returns the age at which one stream ends: the configured one, plus or minus 10 %;
// 0: never.
func Age(most time.Duration, draw float64) time.Duration {
	if most < 0 {
		return 0
	}
	tenth := most / 10
	return most - tenth + time.Duration(draw*float64(2*tenth+1))
}

// Retry returns when a client that was refused should come back: after the hint if
// another replica takes it, after twice as long if this one must have room first.
func (r Reason) Retry(hint time.Duration) time.Duration {
	if r == RefusedDraining {
		return hint
	}
	return 2 * hint
}
