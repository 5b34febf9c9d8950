package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/internal/headers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

// Deps are the parts of the gateway that the calls use.
//
// Static after construction.
type Deps struct {
	Streams *session.Deps // of WatchList
	Service *unary.Service
	Proxies limits.Proxies
	Answers *limits.Answers
	Bodies  *limits.Bodies
	Hosts   headers.Hosts
	// Authenticator identifies the callers; nil: the gateway does not ask for credentials.
	Authenticator *credential.Authenticator
	// Quotas limit the calls of each principal.
	Quotas *limits.Quotas
}

// server is watchtide.v1.WatchService over gRPC, for one call.
//
// All methods may be called from any goroutine.
type server struct {
	*unary.Service // the unary methods; static after construction
	Deps           // static after construction
}

// current returns the server for a call that begins now.
type current func() *server

// of returns the server of a call. The interceptors pass it on, so that one configuration
// applies to the whole call. A call of another service gets the server for a call that begins
// now.
func (s current) of(srv any) *server {
	if one, ours := srv.(*server); ours {
		return one
	}
	return s()
}

// New returns a server of the service, and of reflection, so that grpcurl and the
// like need no proto file. Each call begins with the Deps that now returns. Without a
// configuration there is no TLS. Its connections are those of listener. Handshakes may be nil: they are not limited.
func New(now func() Deps, c *tls.Config, handshakes *netconn.Handshakes) *grpc.Server {
	var s current = func() *server {
		d := now()
		return &server{Service: d.Service, Deps: d}
	}
	out := grpc.NewServer(s.options(c, handshakes)...)
	out.RegisterService(s.description(), s())
	reflection.Register(out)
	return out
}

// Serve serves until the server is stopped, which may happen before it begins.
func Serve(s *grpc.Server, l net.Listener) error {
	err := s.Serve(listener{l})
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// options returns the limits on clients, and the interceptors.
func (s current) options(c *tls.Config, handshakes *netconn.Handshakes) []grpc.ServerOption {
	creds := insecure.NewCredentials()
	if c != nil {
		creds = securing{credentials.NewTLS(c), handshakes}
	}
	return []grpc.ServerOption{
		grpc.Creds(connCredentials{creds}),
		grpc.ForceServerCodecV2(newParcelCodec()),
		grpc.ConnectionTimeout(Timeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: netconn.PingAfter, Timeout: s().Streams.WriteTimeout, MaxConnectionIdle: netconn.IdleTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxHeaderListSize(netconn.MaxHeaderBytes),
		grpc.MaxConcurrentStreams(netconn.MaxStreams),
		grpc.MaxRecvMsgSize(maxRequest), // larger ones are read by incoming
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ChainUnaryInterceptor(s.interceptUnary, s.checkUnaryAuthority, s.identifyUnary),
		grpc.ChainStreamInterceptor(s.interceptStream, s.checkStreamAuthority, s.identifyStream),
	}
}

const (
	// streamWindow is how many bytes of a call gRPC accepts before the call
	// reads.
	streamWindow = 64 << 10
	// connWindow lets large values arrive fast. It holds no memory: gRPC reopens it
	// with whatever arrives.
	connWindow = 1 << 20
)

// interceptUnary turns a panic into an error, errors into statuses, and logs.
func (s current) interceptUnary(ctx context.Context, r any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	began, one := time.Now(), s.of(info.Server)
	ctx, traced := one.trace(ctx, info.FullMethod)
	err = problem.Recovered(func() error {
		resp, err = handler(ctx, r)
		return err
	})
	err = one.ended(ctx, info.FullMethod, began, err)
	traced(status.Code(err))
	return resp, err
}

// interceptStream is interceptUnary for streams.
func (s current) interceptStream(srv any, call grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	connOf(call.Context()).called()
	began := time.Now()
	one := s()
	if _, ours := srv.(*server); ours {
		srv = one
	}
	ctx, traced := one.trace(call.Context(), info.FullMethod)
	bounded := boundedStream{ServerStream: contextStream{call, ctx}, server: one, many: info.IsClientStream}
	err := problem.Recovered(func() error { return handler(srv, bounded) })
	err = one.ended(ctx, info.FullMethod, began, err)
	traced(status.Code(err))
	return err
}

// trace begins the span of a call. The function that it returns ends it.
func (s *server) trace(ctx context.Context, method string) (context.Context, func(codes.Code)) {
	parent := metadata.ValueFromIncomingContext(ctx, "traceparent")
	if len(parent) != 1 {
		parent = []string{""}
	}
	return s.Streams.Tracing.Call(ctx, method, parent[0])
}

// ended logs the end of a call and returns the status that the client gets.
func (s *server) ended(ctx context.Context, method string, began time.Time, err error) error {
	level, result := slog.LevelDebug, statusOf(err)
	attrs := []any{"method", method, "code", status.Code(result).String(), "took", time.Since(began)}
	if status.Code(result) == codes.Internal {
		level, attrs = slog.LevelError, append(attrs, "error", err)
	}
	s.Streams.Log.Log(ctx, level, "gRPC call ended", attrs...)
	return result
}

// statusOf returns err as a status that reveals nothing internal. An error that is
// already a status, from gRPC itself or from its reflection service, is kept.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	p := problem.Of(err)
	if s, ok := status.FromError(err); ok && p.Status != http.StatusInternalServerError {
		return s.Err()
	}
	return p.GRPCStatus().Err()
}
