package rpc

import (
	"context"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// checkAuthority refuses calls to a foreign host. Clients of gRPC name the host of
// their target in :authority.
func (s *server) checkAuthority(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, authority := range md.Get(":authority") {
		if !s.Hosts.Allow(authority) {
			return problem.Misdirected(authority).GRPCStatus().Err()
		}
	}
	return nil
}

func (s *server) checkUnaryAuthority(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := s.checkAuthority(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, r)
}

func (s *server) checkStreamAuthority(srv any, call grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := s.checkAuthority(call.Context()); err != nil {
		return err
	}
	return handler(srv, call)
}
