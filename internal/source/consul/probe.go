package consul

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// probe makes a small request again and again, since an idle Consul is as silent
// as a dead one.
func (c *connection) probe() {
	for {
		why, err := c.probeOnce()
		if err == nil {
			err = c.report(health{prober, why})
		}
		if err != nil {
			c.close(err)
			return
		}
		every := c.source.config.ProbeInterval
		if why != "" {
			every = retryEvery
		}
		if adapter.PauseFor(c.ctx, every) != nil {
			return
		}
	}
}

// probeOnce returns why the server cannot answer, if it reports that.
func (c *connection) probeOnce() (why string, err error) {
	token, err := c.source.config.token()
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", c.source.config.where(), err)
	case token != c.token:
		return "", errRotated
	}
	limit := c.source.config.ProbeInterval
	ctx, end := context.WithTimeout(c.ctx, limit)
	defer end()
	_, err = c.resources.Read(consistent(withToken(ctx, token)), &pbresource.ReadRequest{Id: c.source.probeID()})
	switch {
	case context.Cause(c.ctx) != nil:
		return "", context.Cause(c.ctx)
	case ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded: // the server may notice first
		return "", fmt.Errorf("%w: %s: no answer to a small read within %v", stream.ErrStalled, c.source.config.where(), limit)
	case unknownToken(err):
		return "", c.source.config.failed(err, token)
	}
	// Any answer will do, even that there is no such resource. Other errors are
	// left to the calls that matter.
	return passing(err), nil
}

// probeName is unlikely to be the name of a resource, and would do no harm.
const probeName = "watchtide-probe"

// probeID is within the permissions that the token needs anyway.
func (s *Source) probeID() *pbresource.ID {
	name := s.config.NamePrefix + probeName
	tenancy := s.config.tenancy()
	for _, unit := range []*string{&tenancy.Partition, &tenancy.Namespace} {
		if *unit == Wildcard {
			*unit = ""
		}
	}
	return &pbresource.ID{Name: name[:min(len(name), 63)], Type: s.ofType(), Tenancy: tenancy}
}
