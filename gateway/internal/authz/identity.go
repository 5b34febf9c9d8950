package authz

import (
	"context"
	"errors"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

type identityKey struct{}

// WithIdentity returns the context of a request of the identity.
func WithIdentity(ctx context.Context, id *credential.Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf returns the identity of a request; nil: the gateway does not ask for credentials.
func IdentityOf(ctx context.Context) *credential.Identity {
	id, _ := ctx.Value(identityKey{}).(*credential.Identity)
	return id
}

// Refused returns the answer to a request whose credential is not accepted.
func Refused(err error) *problem.Problem {
	var why *access.Refusal
	if !errors.As(err, &why) {
		return problem.Of(err)
	}
	p := problem.New(why.Status, "%s", why.Text)
	p.RetryAfter, p.Challenge = why.RetryAfter, why.Challenge
	return p
}
