package conversation

import (
	"context"
	"errors"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Definitions returns what the request narrows each of its watches to; nil: it does not
// narrow that one.
func (r *Request) Definitions(ctx context.Context, l problem.Lookup, watches []*watch.Watch, c admission.Client) ([]*view.Definition, *problem.Problem) {
	out := make([]*view.Definition, len(watches))
	for i, w := range watches {
		d, p := l.Definition(ctx, w, r.Narrowings[i], c.String())
		if p != nil {
			return nil, p
		}
		out[i] = d
	}
	return out, nil
}

// Open returns what the stream of an admitted request follows: of each watch the part
// that a definition selects.
func (d *Deps) Open(r *Request, l problem.Lookup, watches []*watch.Watch, definitions []*view.Definition, c admission.Client) ([]*watch.Watch, error) {
	out := make([]*watch.Watch, len(watches))
	for i, w := range watches {
		choice := &r.Watches[i]
		part, err := d.OpenPart(l, w, definitions[i], c, choice.resume)
		var refused *admission.Refusal
		if errors.As(err, &refused) {
			refused.Parameter = r.Narrowings[i].Parameter()
		}
		if err != nil {
			return nil, err
		}
		out[i], choice.View = part, subscribers.ViewOf(w.Name(), definitions[i])
	}
	return out, nil
}

// OpenPart returns the part of a watch that a definition selects, to a client that will
// continue from a position, if that is not nil. The error is an admission.Refusal if a
// limit is reached.
func (d *Deps) OpenPart(l problem.Lookup, w *watch.Watch, of *view.Definition, c admission.Client, resume *stream.Position) (*watch.Watch, error) {
	part, err := l.Open(w, of, views.Request{Client: c.String(), Resume: resume})
	if refused := admission.OfView(w.Name(), c, err); refused != nil {
		return nil, refused
	}
	var p *problem.Problem
	if errors.As(err, &p) && admission.RefusalOf(p) != nil {
		return nil, admission.RefusalOf(p)
	}
	if err == nil && part != w && part.Full() != nil {
		return nil, &admission.Refusal{Reason: admission.RefusedMemory, Watch: w.Name()}
	}
	return part, err
}
