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

// connection is a connection to a server: the watch that runs on it from its start
// to its end, concurrent lists, and the probes. What arrives is handed to the
// follower; any failure ends the connection.
//
// Safe for concurrent use.
type connection struct {
	// Static after construction.
	source    *Source
	ctx       context.Context
	close     context.CancelCauseFunc // the first cause is kept
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

// health is one caller's view of the server.
type health struct {
	caller caller
	why    string // why it cannot answer; empty: it can
}

// caller identifies the origin of a request.
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
	bytes     int    // of the message
	cluster   string // the id of the cluster, if it was requested and given
	early     bool   // it was requested before the watch had sent anything
}

// open opens the watch.
func (s *Source) open(ctx context.Context, conn grpc.ClientConnInterface) (*connection, error) {
	token, err := s.config.token()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.config.where(), err)
	}
	c := &connection{
		source: s, token: token,
		resources: pbresource.NewResourceServiceClient(conn),
		authority: pbconnectca.NewConnectCAServiceClient(conn),
		events:    make(chan event), lists: make(chan listing),
		health: make(chan health), speaks: make(chan struct{}),
	}
	c.ctx, c.close = context.WithCancelCause(ctx)
	watch, err := c.resources.WatchList(withToken(c.ctx, token), &pbresource.WatchListRequest{
		Type: s.ofType(), Tenancy: s.config.tenancy(), NamePrefix: s.config.NamePrefix,
	})
	if err != nil {
		defer c.close(nil)
		return nil, c.ended(err)
	}
	c.running.Go(func() { c.close(c.receive(watch)) })
	c.running.Go(c.probe)
	return c, nil
}

// receive passes on the events of the watch until it ends.
func (c *connection) receive(watch grpc.ServerStreamingClient[pbresource.WatchEvent]) error {
	for first := true; ; first = false {
		e, err := watch.Recv()
		if err != nil {
			return c.ended(err)
		}
		if first {
			close(c.speaks)
		}
		select {
		case c.events <- e:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
}

// ended returns why a call ended.
func (c *connection) ended(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return c.source.config.failed(err, c.token)
}
