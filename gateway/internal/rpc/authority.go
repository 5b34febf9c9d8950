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
			s.Lookup.Refusals().Host(authority, s.Proxies.OfCall(ctx).Addr())
			return problem.Misdirected(authority).GRPCStatus().Err()
		}
	}
	return nil
}

func (s current) checkUnaryAuthority(ctx context.Context, r any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := s.of(info.Server).checkAuthority(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, r)
}

func (s current) checkStreamAuthority(srv any, call grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := s.of(srv).checkAuthority(call.Context()); err != nil {
		return err
	}
	return handler(srv, call)
}
