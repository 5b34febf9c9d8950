package consul

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/consul/proto-public/pbconnectca"
	"github.com/watchtide/watchtide/stream/source/internal/pause"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// clusterPatience is how long to wait for the id of the cluster.
const clusterPatience = 3 * time.Second

// cluster returns the id of the answering cluster: the trust domain of its
// certificate authority, which is created with the cluster and stays the same,
// through restores too. Any token may read it. It is empty if the server does
// not name one, because it has no such authority.
func (c *connection) cluster() string {
	ctx, end := context.WithTimeout(c.ctx, clusterPatience)
	defer end()
	for {
		id, err := c.trustDomain(ctx)
		if err == nil || !unborn(err) || ctx.Err() != nil {
			return id
		}
		if pause.For(c.ctx, retryEvery) != nil {
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

// unborn reports that the cluster is so young that its authority is still being
// created.
func unborn(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), "not yet initialized")
}
