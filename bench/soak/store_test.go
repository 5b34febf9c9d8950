//go:build servers

package soak

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
)

// storeUpstream is a store behind a gRPC server. It has no transactions of
// several keys.
type storeUpstream struct {
	t      *testing.T
	watch  string
	store  *store.Store
	writer stream.Writer
	proxy  *realserver.Proxy // nil before there is one

	server *grpc.Server
	at     string
	ended  chan struct{}
}

func serveStore(t *testing.T, watch string) *storeUpstream {
	t.Helper()
	s := &storeUpstream{t: t, watch: watch}
	s.fill()
	if err := s.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// fill makes an empty store.
func (s *storeUpstream) fill() {
	s.store = store.New(store.Config{})
	s.writer = s.store.Writer(s.watch)
}

func (s *storeUpstream) listen() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.at, s.server, s.ended = l.Addr().String(), grpc.NewServer(), make(chan struct{})
	pb.RegisterWatchServiceServer(s.server, s.store)
	go func(server *grpc.Server, ended chan struct{}) {
		defer close(ended)
		if err := server.Serve(l); err != nil {
			s.t.Error(err)
		}
	}(s.server, s.ended)
	return nil
}

func (s *storeUpstream) address() string { return s.at }

// kill ends the server; connected clients see a reset.
func (s *storeUpstream) kill() {
	if s.proxy != nil {
		s.proxy.Refuse()
		s.proxy.Cut()
	}
	s.server.Stop()
	<-s.ended
}

func (s *storeUpstream) restart() error {
	s.kill()
	if err := s.listen(); err != nil {
		return err
	}
	s.proxy.SetTarget(s.at)
	s.proxy.Heal()
	return nil
}

func (s *storeUpstream) wipe() error {
	s.kill()
	s.fill()
	return s.restart()
}

func (s *storeUpstream) commit(ctx context.Context, writes []write) (revision uint64, err error) {
	for _, w := range writes { // there is one
		if w.value == nil {
			_, err = s.writer.Delete(ctx, stream.DeleteRequest{Key: w.key})
			if err == nil {
				revision, err = s.revision(ctx)
			}
			continue
		}
		var r stream.Resource
		r, _, err = s.writer.Put(ctx, stream.PutRequest{Key: w.key, Value: w.value})
		revision = r.Revision
	}
	return revision, err
}

func (s *storeUpstream) revision(ctx context.Context) (uint64, error) {
	w, err := s.store.GetWatch(ctx, &pb.GetWatchRequest{Watch: s.watch})
	return w.GetRevision(), err
}

func (s *storeUpstream) list(ctx context.Context) (all []stream.Resource, revision uint64, err error) {
	page, err := s.store.ListResources(ctx, &pb.ListResourcesRequest{Watch: s.watch, PageSize: 10_000})
	if err != nil {
		return nil, 0, err
	}
	for _, r := range page.GetResources() {
		all = append(all, stream.Resource{Key: r.GetKey(), Revision: r.GetRevision(), Value: slices.Clone(r.GetValue())})
	}
	return all, page.GetRevision(), nil
}
