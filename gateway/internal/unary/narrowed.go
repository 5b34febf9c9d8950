package unary

import (
	"context"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

type partKey struct{}

// WithPart returns the context of a request whose parameters were checked. p is the part that
// they select.
func WithPart(ctx context.Context, p authz.Part) context.Context {
	return context.WithValue(ctx, partKey{}, p)
}

type tagKey struct{}

// WithTag returns the context of a request whose answer may have a tag; see TagOf.
func WithTag(ctx context.Context) context.Context {
	return context.WithValue(ctx, tagKey{}, new(string))
}

// TagOf returns the tag of the state that the answer to a request shows: authz.Shown.Tag for a
// resource, log.Page.Tag for the first page of a list. Empty: it has none.
func TagOf(ctx context.Context) string {
	if tag, wanted := ctx.Value(tagKey{}).(*string); wanted {
		return *tag
	}
	return ""
}

// setTag sets the tag of the answer to a request, if the context has a place for it.
func setTag(ctx context.Context, tag string) {
	if to, wanted := ctx.Value(tagKey{}).(*string); wanted {
		*to = tag
	}
}

// narrowed is a request for a part of a watch.
type narrowed interface {
	authz.NarrowingMessage
	GetWatch() string
}

// part returns the part of its watch that a request reads.
func (s *Service) part(ctx context.Context, m narrowed) (authz.Part, *problem.Problem) {
	if p, checked := ctx.Value(partKey{}).(authz.Part); checked {
		return p, nil
	}
	client := limits.AnswerOf(ctx).Client().String()
	w, p := s.Lookup.Find(ctx, m.GetWatch(), client)
	if p != nil {
		return authz.Part{}, p
	}
	return w.Narrow(ctx, authz.NarrowingIn(m), client)
}
