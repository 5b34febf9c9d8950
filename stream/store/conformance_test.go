package store

import (
	"context"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

func TestConformanceInProcess(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		s := New(Config{})
		return harness(s, s.Source("notes"))
	})
}

// The store also conforms over a real connection. It is a Unix socket, since a
// restarted server needs its old address: a port could be taken by then.
func TestConformanceOverASocket(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		s := New(Config{})
		server := newServer(t, s)
		server.start(t)
		t.Cleanup(func() { server.stop() })
		source, err := grpcsource.New(grpcsource.Config{Address: "unix:" + server.path, Watch: "notes"})
		if err != nil {
			t.Fatal(err)
		}
		h := harness(s, source)
		h.Restart = func() { server.stop(); server.start(t) }
		h.Disconnect = h.Restart
		h.Restore = func() { server.store = New(Config{}); server.store.Writer("notes"); h.Restart() }
		h.Put = func(key, value string) error { return put(server.store, key, value) }
		h.Delete = func(key string) error { return remove(server.store, key) }
		return h
	})
}

func harness(s *Store, source stream.Source) *sourcetest.Harness {
	s.Writer("notes") // the watch begins
	return &sourcetest.Harness{
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

// server serves a store on a socket, and can be stopped and started again.
type server struct {
	store *Store
	grpc  *grpc.Server
	ended chan error
	path  string
}

func newServer(t *testing.T, s *Store) *server {
	t.Helper()
	// Not t.TempDir: the path of a socket is limited to about 100 bytes.
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &server{store: s, path: filepath.Join(dir, "socket")}
}

func (s *server) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	s.grpc = grpc.NewServer()
	pb.RegisterWatchServiceServer(s.grpc, s.store)
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.grpc.Serve(listener) }()
}

// stop returns when the address is free: a server that is stopped before it serves
// closes its listener later.
func (s *server) stop() {
	s.grpc.Stop()
	<-s.ended
}
