package consul

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/source/internal/pause"
)

// probe makes a small request again and again, since an idle Consul is as silent
// as one that is gone.
func (l *link) probe() {
	for {
		why, err := l.probeOnce()
		if err == nil {
			err = l.report(health{prober, why})
		}
		if err != nil {
			l.close(err)
			return
		}
		every := l.source.config.Probe
		if why != "" {
			every = retryEvery
		}
		if pause.For(l.ctx, every) != nil {
			return
		}
	}
}

// probeOnce returns why the server cannot answer, if it reports that.
func (l *link) probeOnce() (why string, err error) {
	token, err := l.source.config.token()
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", l.source.config.where(), err)
	case token != l.token:
		return "", errRotated
	}
	limit := l.source.config.Probe
	ctx, end := context.WithTimeout(l.ctx, limit)
	defer end()
	_, err = l.resources.Read(consistent(withToken(ctx, token)), &pbresource.ReadRequest{Id: l.source.probeID()})
	switch {
	case context.Cause(l.ctx) != nil:
		return "", context.Cause(l.ctx)
	case ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded: // the server may notice first
		return "", fmt.Errorf("%w: %s: no answer to a small read within %v", stream.ErrStalled, l.source.config.where(), limit)
	case unknownToken(err):
		return "", l.source.config.failed(err, token)
	}
	// It answers, if only that there is no such resource. Other errors are left to
	// the calls that matter.
	return passing(err), nil
}

// probeName is unlikely to be the name of a resource, and would do no harm.
const probeName = "watchtide-probe"

// probeID is within what the token has to cover anyway.
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
