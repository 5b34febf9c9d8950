package authz

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/stream"
)

// Evaluator decides whether streams may go on, and what they may show. The zero value allows all of
// them.
//
// Static after construction.
type Evaluator struct {
	Lookup      *Lookup                   // nil: what a principal may see is not checked
	Credentials *credential.Authenticator // nil: credentials are not checked
}

// Reevaluate replaces the evaluator, ends the authorizations that the new one does not accept, and makes all
// other streams follow what their principals may see now.
func (t *Table) Reevaluate(e Evaluator) {
	t.evaluator.Store(&e) // before the list: Enter looks at the evaluator after it has entered
	t.mu.Lock()
	authorizations := make([]*Authorization, 0, len(t.open))
	for _, p := range t.open {
		authorizations = append(authorizations, p)
	}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), switchWait)
	defer cancel()
	for _, p := range authorizations {
		t.check(ctx, p)
	}
}

// Recheck is like Reevaluate with the same evaluator, for the streams of users of a cluster, and of watches of which a
// cluster says who may read what.
func (t *Table) Recheck() {
	t.mu.Lock()
	var authorizations []*Authorization
	for _, p := range t.open {
		if p.clustered {
			authorizations = append(authorizations, p)
		}
	}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), switchWait)
	defer cancel()
	for _, p := range authorizations {
		t.check(ctx, p)
	}
}

// checkOne is check for a single authorization.
func (t *Table) checkOne(p *Authorization) {
	ctx, cancel := context.WithTimeout(context.Background(), switchWait)
	defer cancel()
	t.check(ctx, p)
}

// check ends an authorization that may not go on. Otherwise it makes the stream follow what its principal
// may see now.
func (t *Table) check(ctx context.Context, p *Authorization) {
	p.evaluating.Lock()
	defer p.evaluating.Unlock()
	e := t.evaluator.Load()
	before := p.validity.Load().who
	if before == nil {
		return // the gateway did not ask for credentials when the stream began
	}
	who, revoked := e.identify(before)
	switch {
	case p.ending.Load() != nil:
	case revoked:
		t.end(p, stream.GoodbyeRevoked)
	case !who.Is(before.Principal):
		t.end(p, stream.GoodbyeWatchReplaced) // the client comes back under its new name
	case !who.Expires.IsZero() && (before.Expires.IsZero() || who.Expires.Before(before.Expires)):
		t.end(p, stream.GoodbyeWatchReplaced) // the client comes back for what is left of its credential
	case e.Lookup != nil:
		t.compare(ctx, e, p, who)
	}
}

// identify returns the identity as it is now, and whether its credential is no longer accepted.
func (e *Evaluator) identify(who *credential.Identity) (now *credential.Identity, revoked bool) {
	if e.Credentials == nil {
		return who, false
	}
	now, err := e.Credentials.Again(who)
	return now, isFinal(err)
}

// compare compares what a stream follows with what its principal may see. If one of the watches
// may not be seen any more, the authorization is revoked, since a new request for the same watches would
// be refused.
//
// If that is not known any more, the stream ends too, and its client comes back.
func (t *Table) compare(ctx context.Context, e *Evaluator, p *Authorization, who *credential.Identity) {
	var losses, others, unknown []int
	for i, part := range p.parts {
		switch now, ok := e.Lookup.RightTo(part.Name(), who); {
		case !ok && !e.Lookup.Knows(part.Name(), who):
			unknown = append(unknown, i)
		case !ok:
			losses = append(losses, i)
		case now != part.Right():
			others = append(others, i)
		}
	}
	switch {
	case len(losses) > 0:
		t.end(p, stream.GoodbyeRevoked, append(losses, unknown...)...)
	case len(unknown) > 0:
		t.end(p, stream.GoodbyeOverloaded, unknown...)
	case len(others) > 0 && !p.switches:
		t.end(p, stream.GoodbyeWatchReplaced)
	case len(others) > 0:
		t.change(ctx, e, p, who, others)
	}
}

// switchWait limits how long it may take to find what streams follow from now on, after a
// reload for all of them together. Until then they show what they did before.
const switchWait = 2 * time.Second

// change makes a stream follow what its principal may see now of some of its watches. If that
// is impossible, the stream ends; its client learns why when it comes back.
func (t *Table) change(ctx context.Context, e *Evaluator, p *Authorization, who *credential.Identity, watches []int) {
	var all []Switch
	for _, i := range watches {
		s, err := e.Lookup.Switch(ctx, i, p.parts[i], who)
		if err != nil {
			t.end(p, stream.GoodbyeWatchReplaced)
			return
		}
		p.parts[i] = s.Part
		if s.Watch != nil {
			all = append(all, s)
		}
	}
	if len(all) > 0 {
		p.change(all)
	}
}

// isFinal reports whether the error means that a credential is not accepted. Otherwise it
// cannot be checked now, and the former decision stays in force.
func isFinal(err error) bool {
	var why *access.Refusal
	return errors.As(err, &why) && why.Status == http.StatusUnauthorized
}
