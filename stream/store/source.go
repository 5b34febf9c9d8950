package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/grpc"

	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// Source returns a source that follows one watch of the store. The watch is created,
// empty, if it does not exist. If the name is not valid for a watch, Watch returns
// an error.
func (s *Store) Source(watch string) stream.Source {
	if _, err := s.open(watch); err != nil {
		return failing(err)
	}
	channel := newChannel(s)
	upstream, err := grpcsource.New(grpcsource.Config{Watch: watch, Conn: channel})
	if err != nil {
		return failing(err)
	}
	return &source{Source: upstream, channel: channel, store: s, name: watch}
}

func failing(err error) stream.Source {
	return stream.SourceFunc(func(context.Context, stream.Resume, stream.Sink) error { return err })
}

// source is a client of the store's service, in the same process.
type source struct {
	*grpcsource.Source
	// Static after construction.
	channel *channel
	store   *Store
	name    string
}

// Watch implements stream.Source. It returns when the server's side has ended
// as well.
func (s *source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	defer s.channel.calls.Wait()
	if resume == (stream.Resume{}) {
		begun, err := s.begin(sink)
		if err != nil {
			return err
		}
		resume = begun
	}
	return s.Source.Watch(ctx, resume, sink)
}

// begin passes on what the store has, with its history, and returns where it ends.
func (s *source) begin(sink stream.Sink) (stream.Resume, error) {
	w := s.store.find(s.name)
	if w == nil {
		return stream.Resume{}, unknownWatch(s.name)
	}
	v := w.log.Snapshot()
	if err := sink.Reset(v.Epoch()); err != nil {
		return stream.Resume{}, err
	}
	earlier := v.Earlier()
	for _, r := range earlier.Deletes {
		if err := sink.Delete(r.Key, r.Revision); err != nil {
			return stream.Resume{}, err
		}
	}
	sink.DeletesCompleteAfter(earlier.After)
	for r := range v.Resources() {
		if err := sink.Upsert(r); err != nil {
			return stream.Resume{}, err
		}
	}
	return stream.Resume{Epoch: v.Epoch(), Revision: v.Revision()}, sink.Commit(v.Revision())
}

// channel calls a server without a connection: messages are passed as they are. It
// counts the calls under way on the server's side.
type channel struct {
	inprocgrpc.Channel
	calls sync.WaitGroup
}

func newChannel(s *Store) *channel {
	c := &channel{}
	c.WithCloner(sharing{}).WithServerStreamInterceptor(c.serve)
	pb.RegisterWatchServiceServer(c, s)
	return c
}

// NewStream implements grpc.ClientConnInterface.
func (c *channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.calls.Add(1) // until serve has ended
	call, err := c.Channel.NewStream(ctx, desc, method, opts...)
	if err != nil {
		c.calls.Done()
	}
	return call, err
}

func (c *channel) serve(server any, call grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	defer c.calls.Done()
	return handle(server, call)
}

// sharing passes messages without copying their contents: the sender never touches a
// message again, and the values in it are immutable.
//
// It is not inprocgrpc.CloneFunc with an identity, which copies the outer struct
// by reflection, the private state of the message included.
type sharing struct{}

// Clone implements inprocgrpc.Cloner.
func (sharing) Clone(in any) (any, error) { return in, nil }

// Copy implements inprocgrpc.Cloner.
func (sharing) Copy(out, in any) error {
	switch to := out.(type) {
	case *pb.WatchListRequest:
		if from, ok := in.(*pb.WatchListRequest); ok {
			to.Watch, to.Position, to.Prefix = from.Watch, from.Position, from.Prefix
			to.UntilEndOfSnapshot = from.UntilEndOfSnapshot
			to.Labels, to.Filter, to.Fields, to.Keys, to.First = from.Labels, from.Filter, from.Fields, from.Keys, from.First
			to.Order, to.Limit, to.Offset, to.After = from.Order, from.Limit, from.Offset, from.After
			to.By, to.Sum, to.MaxRate = from.By, from.Sum, from.MaxRate
			return nil
		}
	case *pb.WatchListResponse:
		if from, ok := in.(*pb.WatchListResponse); ok {
			to.Event, to.Position = from.Event, from.Position
			return nil
		}
	}
	return fmt.Errorf("store: %T into %T: only WatchList is called in process", in, out)
}
