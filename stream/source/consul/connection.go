package consul

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/consul/proto-public/pbconnectca"
	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/grpc"
)

// link is one connection: the watch that runs on it from its start to its end,
// the lists that are read beside it, and the probes. What arrives is handed to
// the follower; any failure ends the link.
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
	health    chan health
	speaks    chan struct{} // closed at the first event: the server serves this watch
}

type event = *pbresource.WatchEvent

// health is what one caller learned about the server.
type health struct {
	caller caller
	why    string // why it cannot answer; empty: it can
}

// caller identifies who asks the server.
type caller uint8

const (
	lister caller = iota
	reader
	prober
	callers
)

// listing is a complete list.
type listing struct {
	resources []*pbresource.Resource
	cluster   string // the id of the cluster, if it was requested and given
	early     bool   // it was requested before the watch had sent anything
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
		health: make(chan health), speaks: make(chan struct{}),
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

// receive passes on the events of the watch until it ends.
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

// ended returns why a call ended.
func (l *link) ended(err error) error {
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return l.source.config.failed(err, l.token)
}
