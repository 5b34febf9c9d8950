package main

import (
	"net"
	"sync"

	"google.golang.org/grpc"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/store"
)

// maxBytes has room for a million rows.
const maxBytes = 1 << 30

// server offers a store over gRPC, at the same address whenever it runs.
type server struct {
	// Static after construction.
	address string
	store   *store.Store

	mu sync.Mutex // guards what follows
	// grpc is nil while the upstream is away.
	grpc    *grpc.Server
	changes map[string]*changes // by watch
}

func newServer() (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{
		address: listener.Addr().String(),
		store:   store.New(store.Config{MaxBytes: maxBytes}),
		changes: map[string]*changes{},
	}
	s.serve(listener)
	return s, nil
}

// serve is called with s.mu held, or before s is shared.
func (s *server) serve(listener net.Listener) {
	s.grpc = grpc.NewServer()
	pb.RegisterWatchServiceServer(s.grpc, s.store)
	go s.grpc.Serve(listener)
}

// leave cuts every stream, and rejects new connections.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grpc != nil {
		s.grpc.Stop()
		s.grpc = nil
	}
}

// comeBack undoes leave.
func (s *server) comeBack() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grpc != nil {
		return nil
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.serve(listener)
	return nil
}
