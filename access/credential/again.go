package credential

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/cluster"
)

var errUnaccepted = access.NewRefusal(access.InvalidToken, "the credential is not accepted any more")

// Again identifies somebody again whom this authenticator, or one that it replaces, has
// identified before. These may have changed: the groups of a static token, the relevant claims
// of a JWT and the accepted algorithms and keys, the names and authorities of certificates, the audiences of
// tokens of a cluster, and the keys of sessions and tickets. It neither checks the end of the credential nor verifies a
// signature again. The error is a *access.Refusal. With the status 401, the credential is no
// longer accepted. With any other status it may still be, and the identity is returned as well.
func (a *Authenticator) Again(id *Identity) (*Identity, error) {
	if id.sealedBy != "" && !a.ring.Opens(id.purpose, id.sealedBy) {
		return nil, errUnaccepted
	}
	now, accepted := id, true
	switch id.Mechanism {
	case access.Token:
		now, accepted = a.tokenAgain(id)
	case access.JWT:
		now, accepted = a.jwtAgain(id)
	case access.Certificate:
		now, accepted = a.certificateAgain(id)
	case access.Kubernetes:
		now, accepted = a.clusterAgain(id)
	}
	if !accepted {
		return nil, errUnaccepted
	}
	return now, a.revoked(now)
}

// jwtAgain returns an identity with the name and the groups that the claims of its token give
// it now. It returns false if such a token is not accepted.
func (a *Authenticator) jwtAgain(id *Identity) (*Identity, bool) {
	p, err := a.tokens.Again(id.Principal)
	if err != nil || p == id.Principal {
		return id, err == nil
	}
	now := *id
	now.Principal = p
	return &now, true
}

// clusterAgain returns an identity with the groups and the claims that the cluster gives its user now. It returns
// false if the token is not accepted.
func (a *Authenticator) clusterAgain(id *Identity) (*Identity, bool) {
	p, accepted := a.cfg.Cluster.Again(id.Principal, cluster.IDOf(id.tokenHash))
	if !accepted || p == id.Principal {
		return id, accepted
	}
	now := *id
	now.Principal = p
	return &now, true
}

// tokenAgain returns an identity with the groups and the end that its static token has now. It returns
// false if the token is gone.
func (a *Authenticator) tokenAgain(id *Identity) (*Identity, bool) {
	p := a.cfg.Tokens.Lookup(id.tokenHash)
	if p == nil || p.Name != id.Name {
		return nil, false
	}
	expires := p.Expires
	if id.sealedBy != "" { // a session ends with its token, or before
		expires = earlier(id.Expires, p.Expires)
	}
	if slices.Equal(p.Groups, id.Groups) && expires.Equal(id.Expires) {
		return id, true
	}
	who, now := *id.Principal, *id
	who.Groups, who.Expires, now.Principal = p.Groups, expires, &who
	return &now, true
}

// earlier returns the earlier of two ends; zero is none.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
