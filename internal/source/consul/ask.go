package consul

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// begin starts a list. It waits at least until the watch has sent something, since
// changes between a list and the start of the watch would be lost. A server
// without the end marker may have nothing to send: such a list is early.
func (c *connection) begin(first bool) {
	c.running.Go(func() {
		list, err := c.list(first)
		if err != nil {
			c.close(err)
			return
		}
		select {
		case c.lists <- list:
		case <-c.ctx.Done():
		}
	})
}

// firstEventTimeout is how long a watch may be silent before a list is read
// anyway.
const firstEventTimeout = time.Second

// listTimeout is how long one list may take.
const listTimeout = 2 * time.Minute

func (c *connection) list(first bool) (list listing, err error) {
	if list.early, err = c.awaitFirstEvent(); err != nil {
		return list, err
	}
	if first {
		list.cluster = c.cluster()
	}
	err = c.retry(lister, c.report, func(token string) error {
		ctx, end := context.WithTimeout(c.ctx, listTimeout)
		defer end()
		answer, err := c.resources.List(consistent(withToken(ctx, token)), &pbresource.ListRequest{
			Type: c.source.ofType(), Tenancy: c.source.config.tenancy(), NamePrefix: c.source.config.NamePrefix,
		})
		list.resources, list.bytes = answer.GetResources(), proto.Size(answer)
		return err
	})
	return list, err
}

// awaitFirstEvent waits until the watch has sent something, but not forever.
func (c *connection) awaitFirstEvent() (silent bool, err error) {
	timer := time.NewTimer(firstEventTimeout)
	defer timer.Stop()
	select {
	case <-c.speaks:
		return false, nil
	case <-timer.C:
		return true, nil
	case <-c.ctx.Done():
		return false, context.Cause(c.ctx)
	}
}

// readTimeout is how long a read of one resource may take.
const readTimeout = 5 * time.Second

// lives reports whether the resource with this key and unique id still exists.
func (c *connection) lives(key, uid string, report func(health) error) (lives bool, err error) {
	err = c.retry(reader, report, func(token string) error {
		ctx, end := context.WithTimeout(c.ctx, readTimeout)
		defer end()
		answer, err := c.resources.Read(consistent(withToken(ctx, token)), &pbresource.ReadRequest{
			Id: c.source.idOf(key),
		})
		lives = err == nil && answer.GetResource().GetId().GetUid() == uid
		switch status.Code(err) {
		case codes.NotFound, codes.PermissionDenied:
			return nil
		}
		return err
	})
	return lives, err
}

// retryEvery is the time between two attempts while the servers have no leader.
const retryEvery = 250 * time.Millisecond

// retry repeats a call until it is answered. Temporary failures are reported
// and waited out.
func (c *connection) retry(of caller, report func(health) error, call func(token string) error) error {
	for {
		token, err := c.source.config.token()
		if err != nil {
			return fmt.Errorf("%s: %w", c.source.config.where(), err)
		}
		err = call(token)
		why := passing(err)
		switch {
		case context.Cause(c.ctx) != nil:
			return context.Cause(c.ctx)
		case err == nil:
			return report(health{of, ""})
		case why == "":
			return c.source.config.failed(err, token)
		}
		if err := report(health{of, why}); err != nil {
			return err
		}
		if err := adapter.PauseFor(c.ctx, retryEvery); err != nil {
			return err
		}
	}
}

// report has the follower report why the server cannot answer.
func (c *connection) report(h health) error {
	select {
	case c.health <- h:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}
