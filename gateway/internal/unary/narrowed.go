package unary

import (
	"context"

	"github.com/watchtide/watchtide/gateway/internal/access"
	"github.com/watchtide/watchtide/gateway/internal/budget"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

type partKey struct{}

// WithPart returns a context for a request whose parameters were checked: p is what they
// narrow its watch to.
func WithPart(ctx context.Context, p access.Part) context.Context {
	return context.WithValue(ctx, partKey{}, p)
}

type tagKey struct{}

// WithTag returns a context for a request whose answer may have a tag; see TagOf.
func WithTag(ctx context.Context) context.Context {
	return context.WithValue(ctx, tagKey{}, new(string))
}

// TagOf returns what names the state that the answer to a request shows: of a resource
// access.Shown.Tag, of the first page of a list log.Page.Tag. Empty: nothing does.
func TagOf(ctx context.Context) string {
	if tag, wanted := ctx.Value(tagKey{}).(*string); wanted {
		return *tag
	}
	return ""
}

// setTag gives the answer to a request a tag, if anybody wants to know.
func setTag(ctx context.Context, tag string) {
	if to, wanted := ctx.Value(tagKey{}).(*string); wanted {
		*to = tag
	}
}

// narrowed is a request for a part of a watch.
type narrowed interface {
	access.NarrowingMessage
	GetWatch() string
}

// part returns what a request has of its watch.
func (s *Service) part(ctx context.Context, m narrowed) (access.Part, *problem.Problem) {
	if p, checked := ctx.Value(partKey{}).(access.Part); checked {
		return p, nil
	}
	w, p := s.Lookup.Find(ctx, m.GetWatch())
	if p != nil {
		return access.Part{}, p
	}
	return w.Narrow(ctx, access.NarrowingIn(m), budget.AnswerOf(ctx).Client().String())
}
