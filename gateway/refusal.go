package gateway

import (
	"fmt"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// refusalReason is why a stream was not let in: a label of watchtide_refusals_total.
type refusalReason string

const (
	refusedDraining    refusalReason = "draining"    // the gateway is shutting down
	refusedSubscribers refusalReason = "subscribers" // too many streams in all
	refusedWatch       refusalReason = "watch"       // too many of one watch
	refusedClient      refusalReason = "client"      // too many of one client
	refusedMemory      refusalReason = "memory"      // the watch does not fit into its memory
	refusedConnections refusalReason = "connections" // too many connections in all
)

var refusalReasons = [...]refusalReason{
	refusedDraining, refusedSubscribers, refusedWatch, refusedClient, refusedMemory, refusedConnections,
}

// refusal says why a stream was not let in.
//
// It must not be modified once handed over.
type refusal struct {
	reason refusalReason
	count  int    // open streams or connections; reason says whose
	limit  int    // how many may be open
	client client // refusedClient
	watch  string // refusedWatch, refusedMemory
}

// Error returns the reason for the client, with what it can do about it.
func (r *refusal) Error() string {
	switch r.reason {
	case refusedDraining:
		return "the gateway is shutting down: come back, to another replica if there is one"
	case refusedWatch:
		return fmt.Sprintf("watch %q has %d streams, of %d at most: come back later", r.watch, r.count, r.limit)
	case refusedClient:
		return fmt.Sprintf("client %s has %d streams open, of %d at most: close some, or follow several watches in one stream", r.client, r.count, r.limit)
	case refusedMemory:
		return fmt.Sprintf("watch %q takes no subscribers: it is too large for its memory ceiling", r.watch)
	case refusedConnections:
		return fmt.Sprintf("%d connections are open, of %d at most: come back later, to another replica if there is one", r.count, r.limit)
	default:
		return fmt.Sprintf("%d streams are open, of %d at most: come back later", r.count, r.limit)
	}
}

// problem returns the answer: 429 if it is the client that has too many, else 503.
func (r *refusal) problem(retry time.Duration) *problem.Problem {
	status := http.StatusServiceUnavailable
	if r.reason == refusedClient {
		status = http.StatusTooManyRequests
	}
	p := problem.New(status, "%s", r.Error())
	if r.watch != "" {
		p.OnWatch(r.watch)
	}
	p.RetryAfter = retry
	return p
}
