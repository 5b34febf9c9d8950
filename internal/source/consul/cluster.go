package consul

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/consul/proto-public/pbconnectca"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// clusterTimeout is how long to wait for the id of the cluster.
const clusterTimeout = 3 * time.Second

// cluster returns the id of the answering cluster: the trust domain of its
// certificate authority, which is created with the cluster and stays the same,
// also through restores. Any token may read it. It is empty if the server does
// not name one, because it has no such authority.
func (c *connection) cluster() string {
	ctx, end := context.WithTimeout(c.ctx, clusterTimeout)
	defer end()
	for {
		id, err := c.trustDomain(ctx)
		if err == nil || !initializing(err) || ctx.Err() != nil {
			return id
		}
		if adapter.PauseFor(c.ctx, retryEvery) != nil {
			return ""
		}
	}
}

func (c *connection) trustDomain(ctx context.Context) (string, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	roots, err := c.authority.WatchRoots(withToken(ctx, c.token), &pbconnectca.WatchRootsRequest{})
	if err != nil {
		return "", err
	}
	answer, err := roots.Recv()
	return answer.GetTrustDomain(), err
}

// initializing reports that the cluster's authority is still being created.
func initializing(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), "not yet initialized")
}
