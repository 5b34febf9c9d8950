package unary

import (
	"context"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/watch"
)

type definitionKey struct{}

// WithDefinition returns a context for a request whose parameters were checked: d is what
// they narrow the watch to, and nil if they do not narrow it.
func WithDefinition(ctx context.Context, d *view.Definition) context.Context {
	return context.WithValue(ctx, definitionKey{}, d)
}

// DefinitionOf returns what WithDefinition was given, if it was called.
func DefinitionOf(ctx context.Context) (d *view.Definition, checked bool) {
	d, checked = ctx.Value(definitionKey{}).(*view.Definition)
	return d, checked
}

// definition returns what a request narrows a watch to; nil if it does not narrow it.
func (s *Service) definition(ctx context.Context, w *watch.Watch, m problem.NarrowingMessage) (*view.Definition, *problem.Problem) {
	if d, checked := DefinitionOf(ctx); checked {
		return d, nil
	}
	return s.Lookup.Definition(ctx, w, problem.NarrowingIn(m))
}

// partOf returns a resource as a view has it, and false if the view has not. A filter that
// fails does not match.
func partOf(r stream.Resource, d *view.Definition) (stream.Resource, bool, error) {
	if matches, _ := d.Matches(r); !matches {
		return stream.Resource{}, false, nil
	}
	r, err := d.Project(r)
	return r, err == nil, err
}
