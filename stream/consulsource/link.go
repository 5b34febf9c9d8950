package consulsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/consul/proto-public/pbconnectca"
	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// link is one connection: the watch that runs on it from its beginning to its
// end, the lists that are read beside it, and the probes. What comes is handed to
// the follower; what fails ends the link.
//
// Safe for concurrent use.
type link struct {
	// Static after construction.
	source    *Source
	ctx       context.Context
	close     context.CancelCauseFunc // the first cause counts
	resources pbresource.ResourceServiceClient
	authority pbconnectca.ConnectCAServiceClient
	token     string         // with which the watch was opened
	running   sync.WaitGroup // its goroutines
	events    chan event     // of the watch
	lists     chan listing   // complete ones
	health    chan string    // why the server cannot answer; empty: it can
	speaks    chan struct{}  // closed at the first event: the server watches for us
}

type event = *pbresource.WatchEvent

// listing is a complete list.
type listing struct {
	resources []*pbresource.Resource
	cluster   string // the id of the cluster, if it was asked for and given
	early     bool   // it was asked for before the watch had said anything
}

// open opens the watch.
func (s *Source) open(ctx context.Context, conn grpc.ClientConnInterface) (*link, error) {
	token, err := s.config.token()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.config.where(), err)
	}
	l := &link{
		source: s, token: token,
		resources: pbresource.NewResourceServiceClient(conn),
		authority: pbconnectca.NewConnectCAServiceClient(conn),
		events:    make(chan event), lists: make(chan listing),
		health: make(chan string), speaks: make(chan struct{}),
	}
	l.ctx, l.close = context.WithCancelCause(ctx)
	watch, err := l.resources.WatchList(withToken(l.ctx, token), &pbresource.WatchListRequest{
		Type: s.ofType(), Tenancy: s.config.tenancy(), NamePrefix: s.config.NamePrefix,
	})
	if err != nil {
		defer l.close(nil)
		return nil, l.ended(err)
	}
	l.running.Go(func() { l.close(l.receive(watch)) })
	l.running.Go(l.probe)
	return l, nil
}

// receive hands the events of the watch on until it ends.
func (l *link) receive(watch grpc.ServerStreamingClient[pbresource.WatchEvent]) error {
	for first := true; ; first = false {
		e, err := watch.Recv()
		if err != nil {
			return l.ended(err)
		}
		if first {
			close(l.speaks)
		}
		select {
		case l.events <- e:
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
}

// ended says why a call ended.
func (l *link) ended(err error) error {
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return l.source.config.failed(err, l.token)
}

// begin starts a list. It takes at least the time until the watch has said
// something, since what happens between a list and the begin of the watch would
// be lost. A server without the end marker may have nothing to say: such a list is
// early.
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

// speechPatience is how long a watch may say nothing at all before a list is read
// nevertheless.
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
	err = l.patiently(l.report, func(token string) error {
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

// hear waits until the watch has said something, but not for ever.
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

// lives says whether the very resource that was told of is there now.
func (l *link) lives(key, uid string, report func(string) error) (lives bool, err error) {
	err = l.patiently(report, func(token string) error {
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

// patiently calls until it is answered. What is passing is reported, and waited
// for.
func (l *link) patiently(report func(string) error, call func(token string) error) error {
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
			return report("")
		case why == "":
			return l.source.config.failed(err, token)
		}
		if err := report(why); err != nil {
			return err
		}
		if err := l.pause(retryEvery); err != nil {
			return err
		}
	}
}

// report has the follower say why the server cannot answer.
func (l *link) report(why string) error {
	select {
	case l.health <- why:
		return nil
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}

func (l *link) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}
