package cluster

import (
	"context"
	"time"
)

// Server is an API server. Its methods may be called from any goroutine. An error means that there is
// no answer; one with a method RetryAfter says when to ask again.
type Server interface {
	// ReviewToken asks for the user of a token, and for which of the audiences it is.
	ReviewToken(ctx context.Context, token string, audiences []string) (Review, error)
	// ReviewAccess asks whether a user may do something.
	ReviewAccess(ctx context.Context, u User, a Attributes) (allowed bool, err error)
	// Namespaces returns the names of at most that many namespaces.
	Namespaces(ctx context.Context, most int) ([]string, error)
	// FollowRules calls changed when what users may do may have changed in a namespace, or if that is empty,
	// anywhere, as at the begin. The error says why it does not any more.
	FollowRules(ctx context.Context, changed func(namespace string)) error
}

// Attributes are what a user may do or not: a verb on all objects of a resource in a namespace, or if
// that is empty, in all namespaces.
type Attributes struct {
	Verb, Group, Resource, Namespace string
}

// User is a user as a cluster knows them.
//
// Static after construction.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Review is the answer about a token.
type Review struct {
	Authenticated bool
	User          User
	Audiences     []string
}

// retryAfter returns when the server wants to be asked again; 0: it does not say.
func retryAfter(err error) time.Duration {
	if busy, ok := err.(interface{ RetryAfter() time.Duration }); ok {
		return busy.RetryAfter()
	}
	return 0
}
