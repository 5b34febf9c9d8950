package consulsource

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/stream"
)

// probe asks the server for something small, again and again, since a Consul that
// has nothing to tell is as silent as one that is gone.
func (l *link) probe() {
	for {
		if err := l.probeOnce(); err != nil {
			l.close(err)
			return
		}
		if err := l.pause(l.source.config.Probe); err != nil {
			return
		}
	}
}

func (l *link) probeOnce() error {
	token, err := l.source.config.token()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", l.source.config.where(), err)
	case token != l.token:
		return errRotated
	}
	limit := l.source.config.Probe
	ctx, end := context.WithTimeout(l.ctx, limit)
	defer end()
	_, err = l.resources.Read(consistent(withToken(ctx, token)), &pbresource.ReadRequest{Id: l.source.probeID()})
	switch {
	case context.Cause(l.ctx) != nil:
		return context.Cause(l.ctx)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s: no answer to a small read within %v", stream.ErrStalled, l.source.config.where(), limit)
	case unknownToken(err):
		return l.source.config.failed(err, token)
	case passing(err) != "":
		return l.report(health{prober, passing(err)})
	}
	switch status.Code(err) {
	case codes.OK, codes.NotFound:
		return l.report(health{prober, ""})
	}
	// It answers. What it says is for the calls that matter.
	return nil
}

// probeName is not likely to be that of a resource, and would do no harm.
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
