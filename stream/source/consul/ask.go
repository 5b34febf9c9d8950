package consul

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/stream/source/internal/pause"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// begin starts a list. It waits at least until the watch has sent something, since
// what happens between a list and the start of the watch would be lost. A server
// without the end marker may have nothing to send: such a list is early.
func (l *link) begin(first bool) {
	l.running.Go(func() {
		list, err := l.list(first)
		if err != nil {
			l.close(err)
			return
		}
		select {
		case l.lists <- list:
		case <-l.ctx.Done():
		}
	})
}

// speechPatience is how long a watch may be silent before a list is read anyway.
const speechPatience = time.Second

// listPatience is how long one list may take.
const listPatience = 2 * time.Minute

func (l *link) list(first bool) (list listing, err error) {
	if list.early, err = l.hear(); err != nil {
		return list, err
	}
	if first {
		list.cluster = l.cluster()
	}
	err = l.patiently(lister, l.report, func(token string) error {
		ctx, end := context.WithTimeout(l.ctx, listPatience)
		defer end()
		answer, err := l.resources.List(consistent(withToken(ctx, token)), &pbresource.ListRequest{
			Type: l.source.ofType(), Tenancy: l.source.config.tenancy(), NamePrefix: l.source.config.NamePrefix,
		})
		list.resources = answer.GetResources()
		return err
	})
	return list, err
}

// hear waits until the watch has sent something, but not forever.
func (l *link) hear() (silent bool, err error) {
	timer := time.NewTimer(speechPatience)
	defer timer.Stop()
	select {
	case <-l.speaks:
		return false, nil
	case <-timer.C:
		return true, nil
	case <-l.ctx.Done():
		return false, context.Cause(l.ctx)
	}
}

// readPatience is how long a read of one resource may take.
const readPatience = 5 * time.Second

// lives reports whether the resource with this key and unique id still exists.
func (l *link) lives(key, uid string, report func(health) error) (lives bool, err error) {
	err = l.patiently(reader, report, func(token string) error {
		ctx, end := context.WithTimeout(l.ctx, readPatience)
		defer end()
		answer, err := l.resources.Read(consistent(withToken(ctx, token)), &pbresource.ReadRequest{
			Id: l.source.idOf(key),
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

// patiently repeats a call until it is answered. Temporary failures are
// reported and waited out.
func (l *link) patiently(of caller, report func(health) error, call func(token string) error) error {
	for {
		token, err := l.source.config.token()
		if err != nil {
			return fmt.Errorf("%s: %w", l.source.config.where(), err)
		}
		err = call(token)
		why := passing(err)
		switch {
		case context.Cause(l.ctx) != nil:
			return context.Cause(l.ctx)
		case err == nil:
			return report(health{of, ""})
		case why == "":
			return l.source.config.failed(err, token)
		}
		if err := report(health{of, why}); err != nil {
			return err
		}
		if err := pause.For(l.ctx, retryEvery); err != nil {
			return err
		}
	}
}

// report has the follower report why the server cannot answer.
func (l *link) report(h health) error {
	select {
	case l.health <- h:
		return nil
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}
