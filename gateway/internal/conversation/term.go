package conversation

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/stream"
)

// Term determines when the server ends a stream. Owned by the goroutine of the stream.
type Term struct {
	TooOld  time.Time // zero: never
	Drains  bool      // the drain was noticed
	LeaveAt time.Time // zero: the gateway does not drain
}

// newTerm returns the term of a stream that begins now.
func (d *Deps) newTerm(now time.Time) (t Term) {
	if age := d.drawMaxAge(); age > 0 {
		t.TooOld = now.Add(age)
	}
	return t
}

// ReasonToEnd returns why the server must end the stream now, or "". complete reports
// that the client has all that it asked for, removed that one of its watches is gone.
func (t *Term) ReasonToEnd(now time.Time, a *admission.Controller, complete, removed bool) stream.GoodbyeReason {
	switch {
	case complete:
		return stream.GoodbyeComplete
	case removed:
		return stream.GoodbyeWatchRemoved
	case t.mustLeave(now, a):
		return stream.GoodbyeDraining
	case !t.TooOld.IsZero() && !now.Before(t.TooOld):
		return stream.GoodbyeMaxAge
	}
	return ""
}

// mustLeave reports whether it is the stream's turn to end while the gateway drains.
// The turn is drawn when the drain is noticed.
func (t *Term) mustLeave(now time.Time, a *admission.Controller) bool {
	if !t.Drains && a.IsDraining() {
		t.Drains = true
		t.LeaveAt = now.Add(a.GoodbyeDelay())
	}
	return !t.LeaveAt.IsZero() && !now.Before(t.LeaveAt)
}

// EndsAt returns when the server must end the stream, as far as it is known; zero:
// never.
func (t *Term) EndsAt() time.Time { return Earlier(t.TooOld, t.LeaveAt) }
