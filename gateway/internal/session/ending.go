package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// ReasonToEnd returns why the server must end the stream now, or "".
func (s *Session) ReasonToEnd(now time.Time) stream.GoodbyeReason {
	why := s.Term.ReasonToEnd(now, s.Deps.Admission, s.Until && s.synced(), s.Removed())
	if s.Answer == nil {
		return why
	}
	switch {
	case s.Answer.Complete():
		return stream.GoodbyeComplete
	case why == stream.GoodbyeDraining, why == stream.GoodbyeMaxAge:
		return "" // see Answer.EndsAt
	}
	return why
}

// Answer is what decides on the end of a session that is the answer to one request. Such a session has
// neither heartbeats nor bookmarks, and is sent no goodbye that is counted.
type Answer interface {
	Complete() bool
	// EndsAt returns when the answer ends with what there is by then.
	EndsAt() time.Time
}

func (s *Session) synced() bool {
	for i := range s.Follows {
		if !s.Follows[i].Sub.Synced() {
			return false
		}
	}
	return true
}

// Removed returns why the stream must end if one of its watches was removed from the registry,
// else "". A watch that is gone takes precedence over one that was replaced.
func (s *Session) Removed() (why stream.GoodbyeReason) {
	for i := range s.Follows {
		if one := Removed(s.Follows[i].Watch); one != "" && why != stream.GoodbyeWatchRemoved {
			why = one
		}
	}
	return why
}

// MustLeave reports whether it is this stream's turn to end while the gateway
// drains.
func (s *Session) MustLeave(now time.Time) bool { return s.mustLeave(now, s.Deps.Admission) }

// FarewellPatience is how long a stream that must end may take to write its goodbye.
// After that it is cut off, so that a client that does not read cannot hold it open.
const FarewellPatience = 2 * time.Second

// Overdue returns why the stream must be cut off now although its client takes no
// bytes, or "" if it need not be.
func (s *Session) Overdue(now time.Time) stream.GoodbyeReason {
	before := now.Add(-FarewellPatience)
	switch {
	case s.MustLeave(now) && !before.Before(s.LeaveAt):
		return stream.GoodbyeDraining
	case !s.TooOld.IsZero() && !before.Before(s.TooOld):
		return stream.GoodbyeMaxAge
	}
	if at := s.Authorization.CutAt(FarewellPatience); !at.IsZero() && !now.Before(at) {
		return s.Authorization.ReasonToEnd(now)
	}
	return ""
}

// OverdueAt returns when the stream must be cut off; zero: never.
func (s *Session) OverdueAt() time.Time {
	at := Earlier(s.TooOld, s.LeaveAt)
	if !at.IsZero() {
		at = at.Add(FarewellPatience)
	}
	return Earlier(at, s.Authorization.CutAt(FarewellPatience))
}

// Goodbye ends the stream deliberately.
func (s *Session) Goodbye(reason stream.GoodbyeReason, out Encoder) {
	if (reason == stream.GoodbyeRevoked || len(s.Authorization.Losses()) > 0) && s.Format != 0 {
		s.withdraw(out)
	}
	s.GoodbyeSaid = reason
	out.WriteGoodbye(s, reason)
}

// SaidGoodbye counts a goodbye that was sent.
func (s *Session) SaidGoodbye() {
	s.Deps.Metrics.EventsOut(s.Transport(), stream.Goodbye, 1)
	s.Delivered.Events++
	s.Deps.Metrics.Goodbye(s.Transport(), s.GoodbyeSaid)
}

// RetryHint returns when one client should reconnect.
func (d *Deps) RetryHint() time.Duration {
	return limits.RetryHint(d.Retry, rand.Float64())
}

// drawMaxAge returns the age at which one stream ends; 0: never.
func (d *Deps) drawMaxAge() time.Duration {
	return limits.Age(d.MaxAge, rand.Float64())
}

// Admit counts a stream in, or returns why it must be refused.
func (d *Deps) Admit(ctx context.Context, c limits.Client, watches ...authz.Handle) (limits.Ref, *limits.Refusal) {
	names := make([]string, len(watches))
	for i, w := range watches {
		names[i] = w.Name()
		if w.Full() != nil {
			return limits.Ref{}, &limits.Refusal{Reason: limits.RefusedMemory, Watch: names[i]}
		}
	}
	who := authz.IdentityOf(ctx)
	if refused := d.Quotas.Enter(who); refused != nil {
		return limits.Ref{}, refused
	}
	as, refused := d.Admission.Enter(c, names)
	if refused != nil {
		d.Quotas.Leave(who)
		return as, refused
	}
	uses, refused := use(watches, c)
	as = d.Admission.AddUses(as, uses)
	if refused != nil {
		d.Admission.Leave(as)
		d.Quotas.Leave(who)
	}
	return as, refused
}

// use counts the watches of templates for a client that is about to follow them, up to the first
// for which it is refused.
func use(watches []authz.Handle, c limits.Client) (uses []*watch.Use, refused *limits.Refusal) {
	for _, w := range watches {
		u, full := w.Use(c.String())
		if full != nil {
			return uses, limits.OfTemplate(w.Name(), full)
		}
		if u != nil {
			uses = append(uses, u)
		}
	}
	return uses, nil
}

// TooManyRequests counts a request that is refused because its principal, or its address if it
// has none, has made too many. It returns the answer.
func (d *Deps) TooManyRequests(mechanism string, wait time.Duration) *problem.Problem {
	d.Metrics.RequestRefused(mechanism)
	p := problem.New(http.StatusTooManyRequests, "too many requests came with this credential, or from this address without one: come back later")
	p.RetryAfter = max(wait, time.Second)
	return p
}

// Unfound returns the answer to a stream whose watch could not be found, and counts it as
// a refusal if that is for lack of room.
func (d *Deps) Unfound(transport string, p *problem.Problem) *problem.Problem {
	if why := limits.RefusalOf(p); why != nil {
		return d.Refused(transport, why)
	}
	return p
}

// NotOpened returns an error of Open as a problem. It counts a refusal, and logs anything
// else.
func (d *Deps) NotOpened(transport string, err error) *problem.Problem {
	var refused *limits.Refusal
	if errors.As(err, &refused) {
		return d.Refused(transport, refused)
	}
	d.Log.Error("a view cannot be opened", "error", err)
	return problem.Of(err)
}

// Refused counts a refusal, and returns it as a problem.
func (d *Deps) Refused(transport string, why *limits.Refusal) *problem.Problem {
	d.Metrics.Refused(transport, why)
	return why.Problem(why.Reason.Retry(d.RetryHint()))
}

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
