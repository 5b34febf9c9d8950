package grpc_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"google.golang.org/grpc"
)

const watched = "services"

// served is a store behind a real gRPC server, which can be killed and
// restarted with the same content or with none.
type served struct {
	t      *testing.T
	store  *store.Store
	server *grpc.Server
	ended  chan struct{}
	proxy  *realserver.Proxy
}

func serveStore(t *testing.T) *served {
	s := &served{t: t, store: store.New(store.Config{})}
	s.store.Writer(watched)
	s.proxy = realserver.NewProxy(t, s.listen())
	t.Cleanup(s.kill)
	return s
}

// listen starts a server for the store, and returns where.
func (s *served) listen() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.server, s.ended = grpc.NewServer(), make(chan struct{})
	pb.RegisterWatchServiceServer(s.server, s.store)
	go func(server *grpc.Server, ended chan struct{}) {
		defer close(ended)
		if err := server.Serve(l); err != nil {
			s.t.Error(err)
		}
	}(s.server, s.ended)
	return l.Addr().String()
}

// kill ends the server abruptly: its connections are reset.
func (s *served) kill() {
	s.proxy.Refuse()
	s.proxy.Cut()
	s.server.Stop()
	<-s.ended
}

func (s *served) restart() error {
	s.kill()
	s.proxy.SetTarget(s.listen())
	s.proxy.Heal()
	return nil
}

func (s *served) wipe() error {
	s.kill()
	s.store = store.New(store.Config{})
	s.store.Writer(watched)
	return s.restart()
}

func (s *served) put(ctx context.Context, key, value string) (stream.Resource, error) {
	r, _, err := s.store.Writer(watched).Put(ctx, stream.PutRequest{Key: key, Value: []byte(value)})
	return r, err
}

func (s *served) delete(ctx context.Context, key string) (uint64, error) {
	if _, err := s.store.Writer(watched).Delete(ctx, stream.DeleteRequest{Key: key}); err != nil {
		return 0, err
	}
	_, revision, err := s.list(ctx)
	return revision, err
}

func (s *served) list(context.Context) ([]stream.Resource, uint64, error) {
	page, err := s.store.ListResources(s.t.Context(), &pb.ListResourcesRequest{Watch: watched, PageSize: 1000})
	if err != nil {
		return nil, 0, err
	}
	var all []stream.Resource
	for _, r := range page.GetResources() {
		all = append(all, stream.Resource{Key: r.GetKey(), Revision: r.GetRevision(), Value: slices.Clone(r.GetValue())})
	}
	return all, page.GetRevision(), nil
}

func TestFaults(t *testing.T) {
	s := serveStore(t)
	source, err := grpcsource.New(grpcsource.Config{Address: s.proxy.Addr(), Watch: watched, StallAfter: 700 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	faults.Run(t, &faults.Rig{
		Name: "grpc", Source: source, Proxy: s.proxy,
		Put: s.put, Delete: s.delete, List: s.list,
		Kill: s.kill, Restart: s.restart, Wipe: s.wipe,
		Close: func() { source.Close(); s.kill() },
	})
}
