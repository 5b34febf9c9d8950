package gateway

import (
	"context"
	"net/http"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// misdirected returns the answer to a request for a name that is not one of ours.
func misdirected(authority string) *problem.Problem {
	if len(authority) > 253 {
		authority = authority[:253]
	}
	return problem.New(http.StatusMisdirectedRequest,
		"this gateway is not served under the host %q: ask for it by its IP address or as localhost, or add the name to http.hosts in its configuration", authority)
}

// checkHost refuses requests for a foreign host. Probes pass: they reveal little, and
// name whatever host their load balancer is configured with.
func (g *Gateway) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.hosts.Allow(r.Host) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			problem.Write(w, misdirected(r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkAuthority is checkHost for gRPC, whose clients name the host of their
// target in :authority.
func (g *Gateway) checkAuthority(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, authority := range md.Get(":authority") {
		if !g.hosts.Allow(authority) {
			return misdirected(authority).GRPCStatus().Err()
		}
	}
	return nil
}

func (g *Gateway) checkUnaryAuthority(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := g.checkAuthority(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, r)
}

func (g *Gateway) checkStreamAuthority(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := g.checkAuthority(s.Context()); err != nil {
		return err
	}
	return handler(srv, s)
}
