package rpc

import (
	"context"
	"errors"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc"
)

// identify returns the context of a call, with the identity of its caller.
func (s *server) identify(ctx context.Context, method string) (context.Context, error) {
	if s.Authenticator == nil {
		return ctx, nil
	}
	id, err := s.Authenticator.IdentifyCall(ctx)
	if err != nil {
		var why *access.Refusal
		if errors.As(err, &why) {
			s.Streams.Metrics.CredentialRefused(why.Reason)
			s.Lookup.RecordRefusal(ctx, why, s.Proxies.OfCall(ctx).Addr())
		}
		return nil, authz.Refused(err)
	}
	s.Streams.Metrics.Identified(id.Mechanism)
	if wait := s.Quotas.Request(id); wait > 0 {
		return nil, s.Streams.TooManyRequests(id.Mechanism, wait)
	}
	answer := limits.AnswerOf(ctx)
	answer.Charge(limits.Payer(id, answer.Client()))
	return authz.WithAction(authz.WithIdentity(ctx, id), actions[method]), nil
}

// actions are the actions of calls, by method.
var actions = map[string]access.Action{
	api.WatchService_WatchList_FullMethodName:      access.Open,
	api.WatchService_ListResources_FullMethodName:  access.List,
	api.WatchService_GetResource_FullMethodName:    access.Get,
	api.WatchService_GetWatch_FullMethodName:       access.Describe,
	api.WatchService_PutResource_FullMethodName:    access.Write,
	api.WatchService_DeleteResource_FullMethodName: access.Delete,
}

func (s current) identifyUnary(ctx context.Context, r any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := s.of(info.Server).identify(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return handler(ctx, r)
}

func (s current) identifyStream(srv any, call grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := s.of(srv).identify(call.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	return handler(srv, contextStream{call, ctx})
}

// contextStream is a streaming call with another context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the other context.
func (s contextStream) Context() context.Context { return s.ctx }
