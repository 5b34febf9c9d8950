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
	"github.com/watchtide/watchtide/stream/watch"
)

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
