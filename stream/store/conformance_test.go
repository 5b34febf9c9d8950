package store

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/grpcsource"
	"github.com/watchtide/watchtide/stream/streamtest"
)

func TestConformanceInProcess(t *testing.T) {
	streamtest.RunConformance(t, func(t *testing.T) *streamtest.Harness {
		s := New(Config{})
		return harness(s, s.Source("notes"))
	})
}

// The store is as good an upstream over a real connection.
func TestConformanceOverTheNetwork(t *testing.T) {
	streamtest.RunConformance(t, func(t *testing.T) *streamtest.Harness {
		s := New(Config{})
		server := newServer(s)
		server.start(t, "127.0.0.1:0")
		t.Cleanup(func() { server.stop() })
		source, err := grpcsource.New(grpcsource.Config{Address: server.address, Watch: "notes"})
		if err != nil {
			t.Fatal(err)
		}
		h := harness(s, source)
		h.Restart = func() { server.stop(); server.start(t, server.address) }
		h.Disconnect = h.Restart
		h.Restore = func() { server.store = New(Config{}); server.store.Writer("notes"); h.Restart() }
		h.Put = func(key, value string) error { return put(server.store, key, value) }
		h.Delete = func(key string) error { return remove(server.store, key) }
		return h
	})
}

func harness(s *Store, source stream.Source) *streamtest.Harness {
	s.Writer("notes") // the watch begins
	return &streamtest.Harness{
		Source:  source,
		Put:     func(key, value string) error { return put(s, key, value) },
		Delete:  func(key string) error { return remove(s, key) },
		Resumes: true,
	}
}

func put(s *Store, key, value string) error {
	_, _, err := s.Writer("notes").Put(context.Background(), stream.PutRequest{Key: key, Value: []byte(value)})
	return err
}

func remove(s *Store, key string) error {
	_, err := s.Writer("notes").Delete(context.Background(), stream.DeleteRequest{Key: key})
	return err
}

// server serves a store on loopback, and can be stopped and started again.
type server struct {
	store   *Store
	grpc    *grpc.Server
	address string
}

func newServer(s *Store) *server { return &server{store: s} }

func (s *server) start(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.grpc = grpc.NewServer()
	pb.RegisterWatchServiceServer(s.grpc, s.store)
	go func() { _ = s.grpc.Serve(listener) }()
}

func (s *server) stop() { s.grpc.Stop() }
