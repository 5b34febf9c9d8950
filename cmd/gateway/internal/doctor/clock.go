package doctor

import (
	"context"
	"net/http"
	"time"
)

// clock compares the clock of the other side with the one of this machine.
type clock struct {
	known     bool
	ahead     time.Duration // of the other side
	roundTrip time.Duration // of the same answer, the shortest so far
}

// take reads the clock of the other side from an answer, if it came faster than others. Date
// has whole seconds.
func (c *clock) take(a *answer) {
	roundTrip := a.begun.Sub(a.sent)
	if c.known && roundTrip >= c.roundTrip {
		return
	}
	date, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		return
	}
	c.known, c.roundTrip = true, roundTrip
	c.ahead = date.Add(time.Second / 2).Sub(a.sent.Add(roundTrip / 2))
}

// maxSkew is how far clocks may be apart, beyond what cannot be measured.
const maxSkew = 5 * time.Second

// checkClock compares the clocks, and looks for times of the gateway in the future.
func (e *Examination) checkClock(ctx context.Context) {
	const mend = "synchronize the clocks of all machines: ends of credentials, and the times since when data is stale, are wrong otherwise"
	if !e.clock.known {
		e.unknown(ctx, Clock, "no answer has a Date")
		return
	}
	apart := e.clock.ahead.Abs() - time.Second/2 - e.clock.roundTrip/2
	if apart > maxSkew {
		which := "ahead of"
		if e.clock.ahead < 0 {
			which = "behind"
		}
		e.problem(ctx, Clock, mend, "the clock of the gateway, or of the proxy that answers, is %v %s this one", rounded(e.clock.ahead.Abs()), which)
		return
	}
	limit := time.Now().Add(maxSkew + e.clock.roundTrip/2)
	for _, w := range e.list.Watches {
		for _, at := range []time.Time{w.Since, w.Upstream.Since} {
			if at.After(limit) {
				e.problem(ctx, Clock, mend, "watch %q has a time of the gateway or of its upstream that is %v in the future", shortened(w.Name), rounded(time.Until(at)))
				return
			}
		}
	}
	e.ok(ctx, Clock, "equal to this one within %v", rounded(max(e.clock.ahead.Abs(), time.Second)))
}
