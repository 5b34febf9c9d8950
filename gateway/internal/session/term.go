package session

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Term determines when the server ends a stream. Owned by the goroutine of the stream.
type Term struct {
	TooOld  time.Time // zero: never
	Drains  bool      // the drain was noticed
	LeaveAt time.Time // zero: the gateway does not drain
	// Authorization says how long the stream may go on; nil: the gateway does not ask for credentials.
	// Static after construction.
	Authorization *authz.Authorization
}

// newTerm returns the term of a stream that begins now.
func (d *Deps) newTerm(now time.Time, p *authz.Authorization) (t Term) {
	t.Authorization = p
	if age := d.drawMaxAge(); age > 0 {
		t.TooOld = now.Add(age)
	}
	return t
}

// ReasonToEnd returns why the server must end the stream now, or "". complete reports
// that the client has all that it asked for. removed is that of its watches.
func (t *Term) ReasonToEnd(now time.Time, a *limits.Controller, complete bool, removed stream.GoodbyeReason) stream.GoodbyeReason {
	switch {
	case complete:
		return stream.GoodbyeComplete
	case removed != "":
		return removed
	case t.Authorization.ReasonToEnd(now) != "":
		return t.Authorization.ReasonToEnd(now)
	case t.mustLeave(now, a):
		return stream.GoodbyeDraining
	case !t.TooOld.IsZero() && !now.Before(t.TooOld):
		return stream.GoodbyeMaxAge
	}
	return ""
}

// Removed returns why a stream that follows a watch must end: the watch was removed, and
// perhaps replaced; "" if it is still served.
func Removed(w *watch.Watch) stream.GoodbyeReason {
	removed, replaced := w.Removed()
	switch {
	case replaced:
		return stream.GoodbyeWatchReplaced
	case removed, w.Ended():
		return stream.GoodbyeWatchRemoved
	}
	return ""
}

// mustLeave reports whether it is the stream's turn to end while the gateway drains.
// The turn is drawn when the drain is noticed.
func (t *Term) mustLeave(now time.Time, a *limits.Controller) bool {
	if !t.Drains && a.IsDraining() {
		t.Drains = true
		t.LeaveAt = now.Add(a.GoodbyeDelay())
	}
	return !t.LeaveAt.IsZero() && !now.Before(t.LeaveAt)
}

// EndsAt returns when the server must end the stream, as far as it is known; zero:
// never.
func (t *Term) EndsAt() time.Time {
	return Earlier(Earlier(t.TooOld, t.LeaveAt), t.Authorization.EndsAt())
}
