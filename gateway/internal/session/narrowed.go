package session

import (
	"context"
	"errors"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Parts returns the part of each watch that the stream follows.
func (r *Request) Parts(ctx context.Context, watches []authz.Handle, c limits.Client) ([]authz.Part, *problem.Problem) {
	out := make([]authz.Part, len(watches))
	for i, w := range watches {
		part, p := w.Narrow(ctx, r.Narrowings[i], c.String())
		if p != nil {
			return nil, p
		}
		out[i] = part
	}
	return out, nil
}

// Open returns what a stream follows. The error is an *limits.Refusal if a limit is
// reached.
func (d *Deps) Open(r *Request, parts []authz.Part, c limits.Client) ([]*watch.Watch, error) {
	out := make([]*watch.Watch, len(parts))
	for i, part := range parts {
		choice := &r.Watches[i]
		w, err := d.openPart(part, c, choice.resume)
		var refused *limits.Refusal
		if errors.As(err, &refused) && r.Narrowings != nil {
			refused.Parameter = r.Narrowings[i].Parameter()
		}
		if err != nil {
			return nil, err
		}
		out[i], choice.View, choice.counted = w, introspection.CountsOf(part.Name(), part.Shared(w), part.SharedGrouping(w)), part.Counts()
	}
	return out, nil
}

// OpenWindow returns the window to which a stream moves. The error is as that of Open.
func (d *Deps) OpenWindow(part authz.Part, c limits.Client) (*watch.Watch, error) {
	return d.openPart(part, c, nil)
}

// openPart is Open for one watch.
func (d *Deps) openPart(part authz.Part, c limits.Client, resume *stream.Position) (*watch.Watch, error) {
	c = limits.Payer(part.Who(), c)
	w, err := part.Open(views.Request{Client: c.String(), Resume: resume})
	if refused := limits.OfView(part.Name(), c, err); refused != nil {
		return nil, refused
	}
	var p *problem.Problem
	if errors.As(err, &p) && limits.RefusalOf(p) != nil {
		return nil, limits.RefusalOf(p)
	}
	if err == nil && part.Definition() != nil && w.Full() != nil {
		return nil, &limits.Refusal{Reason: limits.RefusedMemory, Watch: part.Name()}
	}
	return w, err
}
