package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/watchtide/watchtide/internal/log"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	defaultPage = 1_000
	maxPage     = 10_000
)

// ListWatches implements pb.WatchServiceServer.
func (s *Store) ListWatches(context.Context, *pb.ListWatchesRequest) (*pb.ListWatchesResponse, error) {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.watches))
	s.mu.Unlock()
	var r pb.ListWatchesResponse
	for _, name := range names {
		r.Watches = append(r.Watches, s.find(name).describe())
	}
	return &r, nil
}

// GetWatch implements pb.WatchServiceServer.
func (s *Store) GetWatch(_ context.Context, r *pb.GetWatchRequest) (*pb.Watch, error) {
	if w := s.find(r.GetWatch()); w != nil {
		return w.describe(), nil
	}
	return nil, unknownWatch(r.GetWatch())
}

// describe leaves out the gateway's data: the source's name in its
// configuration, and its subscribers.
func (w *watch) describe() *pb.Watch {
	v := w.log.Snapshot()
	return &pb.Watch{
		Name: w.name, State: v.Status().State.String(), Since: timestamppb.New(v.Status().Since),
		Epoch: v.Epoch(), Revision: v.Revision(), Count: uint64(v.Count()), Bytes: uint64(v.Bytes()),
		Writable: true,
	}
}

// ListResources implements pb.WatchServiceServer.
func (s *Store) ListResources(_ context.Context, r *pb.ListResourcesRequest) (*pb.ListResourcesResponse, error) {
	w := s.find(r.GetWatch())
	if w == nil {
		return nil, unknownWatch(r.GetWatch())
	}
	if err := notNarrowed(r.GetPrefix(), r); err != nil {
		return nil, err
	}
	size := int(r.GetPageSize())
	if size == 0 {
		size = defaultPage
	}
	page, err := w.log.Page(r.GetPageToken(), min(size, maxPage))
	if err != nil {
		return nil, withCode(err)
	}
	out := &pb.ListResourcesResponse{
		Watch: w.name, Position: page.Position.String(), Revision: page.Revision,
		Count: uint64(page.Count), NextPageToken: page.Next,
	}
	for _, res := range page.Resources {
		out.Resources = append(out.Resources, resource(res))
	}
	return out, nil
}

// GetResource implements pb.WatchServiceServer.
func (s *Store) GetResource(_ context.Context, r *pb.GetResourceRequest) (*pb.Resource, error) {
	w := s.find(r.GetWatch())
	if w == nil {
		return nil, unknownWatch(r.GetWatch())
	}
	if err := notNarrowed(r.GetPrefix(), r); err != nil {
		return nil, err
	}
	key, err := stream.KeyFromWire(r.GetKey(), r.GetKeyEncoding())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	res, ok := w.log.Snapshot().Get(key)
	if !ok {
		return nil, status.Errorf(codes.NotFound, "watch %q has no key %q", w.name, key)
	}
	return resource(res), nil
}

// PutResource implements pb.WatchServiceServer.
func (s *Store) PutResource(ctx context.Context, r *pb.PutResourceRequest) (*pb.PutResourceResponse, error) {
	w, key, err := s.target(r.GetWatch(), r.GetKey(), r.GetKeyEncoding())
	if err != nil {
		return nil, err
	}
	stored, created, err := w.Put(ctx, stream.PutRequest{
		Key: key, Value: r.GetValue(), IfRevision: r.IfRevision, ValidateOnly: r.GetValidateOnly(),
	})
	if err != nil {
		return nil, withCode(err)
	}
	return &pb.PutResourceResponse{Resource: resource(stored), Created: created}, nil
}

// DeleteResource implements pb.WatchServiceServer.
func (s *Store) DeleteResource(ctx context.Context, r *pb.DeleteResourceRequest) (*pb.DeleteResourceResponse, error) {
	w, key, err := s.target(r.GetWatch(), r.GetKey(), r.GetKeyEncoding())
	if err != nil {
		return nil, err
	}
	deleted, err := w.Delete(ctx, stream.DeleteRequest{
		Key: key, IfRevision: r.IfRevision, ValidateOnly: r.GetValidateOnly(),
	})
	if err != nil {
		return nil, withCode(err)
	}
	return &pb.DeleteResourceResponse{Deleted: deleted}, nil
}

// target returns the watch and the key of a write. A write does not create a
// watch.
func (s *Store) target(name, wireKey, encoding string) (*writer, string, error) {
	w := s.find(name)
	if w == nil {
		return nil, "", unknownWatch(name)
	}
	key, err := stream.KeyFromWire(wireKey, encoding)
	if err != nil {
		return nil, "", status.Error(codes.InvalidArgument, err.Error())
	}
	return &writer{store: s, watch: w}, key, nil
}

// narrowing is a request that may be for a part of a watch.
type narrowing interface {
	GetLabels() string
	GetFilter() string
	GetFields() []string
}

// windowing is a request that may be for a window.
type windowing interface {
	GetOrder() string
	GetLimit() uint32
	GetOffset() uint32
	GetAfter() string
}

// counting is a request that may be for counts.
type counting interface {
	GetBy() []string
	GetSum() string
}

// notNarrowed refuses to narrow a watch: that is left to the gateway.
func notNarrowed(prefix string, r narrowing) error {
	narrows := prefix != "" || r.GetLabels() != "" || r.GetFilter() != "" || len(r.GetFields()) > 0
	if w, ok := r.(windowing); ok {
		narrows = narrows || w.GetOrder() != "" || w.GetLimit() != 0 || w.GetOffset() != 0 || w.GetAfter() != ""
	}
	if c, ok := r.(counting); ok {
		narrows = narrows || len(c.GetBy()) > 0 || c.GetSum() != ""
	}
	if k, ok := r.(interface{ GetKeys() []string }); ok {
		narrows = narrows || len(k.GetKeys()) > 0
	}
	if f, ok := r.(interface{ GetFirst() []string }); ok {
		narrows = narrows || len(f.GetFirst()) > 0
	}
	if m, ok := r.(interface{ GetMaxRate() string }); ok {
		narrows = narrows || m.GetMaxRate() != ""
	}
	if !narrows {
		return nil
	}
	return status.Error(codes.InvalidArgument, "the store serves whole watches, in an order of its own: want no keys, first, labels, filter, fields, order, by or max_rate, and prefix only in WatchList")
}

func unknownWatch(name string) error {
	return status.Errorf(codes.NotFound, "there is no watch %q", name)
}

// withCode gives an error of the store its gRPC code.
func withCode(err error) error {
	var (
		conflict *stream.ConflictError
		invalid  *stream.InvalidError
		tooLarge *stream.TooLargeError
		unable   *stream.UnavailableError
	)
	switch {
	case errors.As(err, &conflict):
		return status.Error(codes.Aborted, err.Error()) // as from the gateway: read again, try again
	case errors.As(err, &invalid):
		return status.Error(codes.InvalidArgument, err.Error())
	case errors.As(err, &tooLarge):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.As(err, &unable):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, log.ErrPageGone):
		return status.Error(codes.OutOfRange, err.Error())
	}
	return status.FromContextError(err).Err()
}
