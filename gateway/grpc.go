package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

// maxStreams is how many requests one HTTP/2 connection, and how many calls one gRPC
// connection, may have open.
const maxStreams = 100

// registerGRPC registers what the gateway serves over gRPC: the service, and
// reflection, so that grpcurl and the like need no proto file.
func (g *Gateway) registerGRPC(s *grpc.Server) {
	s.RegisterService(g.grpcService(), &service{gateway: g})
	reflection.Register(s)
}

// grpcOptions returns the options of a server for registerGRPC: limits on clients,
// and the interceptors. Without a configuration there is no TLS.
func (g *Gateway) grpcOptions(c *tls.Config) []grpc.ServerOption {
	creds := insecure.NewCredentials()
	if c != nil {
		creds = credentials.NewTLS(c)
	}
	return []grpc.ServerOption{
		grpc.Creds(connCredentials{creds}),
		grpc.ForceServerCodecV2(newParcelCodec()),
		grpc.ConnectionTimeout(grpcTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: pingAfter, Timeout: g.cfg.WriteTimeout, MaxConnectionIdle: idleTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxRecvMsgSize(maxRequest), // larger ones are read by incoming
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ChainUnaryInterceptor(g.interceptUnary, g.checkUnaryAuthority),
		grpc.ChainStreamInterceptor(g.interceptStream, g.checkStreamAuthority),
	}
}

const (
	// streamWindow is how much of a call gRPC accepts without being asked.
	streamWindow = 64 << 10
	// connWindow lets large values arrive fast. It holds no memory: gRPC reopens it
	// with whatever arrives.
	connWindow = 1 << 20
)

// interceptUnary turns a panic into an error, errors into statuses, and logs.
func (g *Gateway) interceptUnary(ctx context.Context, r any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	began := time.Now()
	err = recovered(func() error {
		resp, err = handler(ctx, r)
		return err
	})
	return resp, g.ended(ctx, info.FullMethod, began, err)
}

// interceptStream is interceptUnary for streams.
func (g *Gateway) interceptStream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	connOf(s.Context()).called()
	began := time.Now()
	s = boundedStream{ServerStream: s, gateway: g, many: info.IsClientStream}
	err := recovered(func() error { return handler(srv, s) })
	return g.ended(s.Context(), info.FullMethod, began, err)
}

// panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

// Error implements error.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// recovered calls f and returns its panic, if there is one, as an error.
func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}

// ended logs the end of a call and returns the status that the client gets.
func (g *Gateway) ended(ctx context.Context, method string, began time.Time, err error) error {
	level, result := slog.LevelDebug, statusOf(err)
	attrs := []any{"method", method, "code", status.Code(result).String(), "took", time.Since(began)}
	if status.Code(result) == codes.Internal {
		level, attrs = slog.LevelError, append(attrs, "error", err)
	}
	g.log.Log(ctx, level, "gRPC call ended", attrs...)
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
