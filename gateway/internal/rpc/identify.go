package rpc

import (
	"context"
	"errors"

	"github.com/watchtide/watchtide/access/audit"
	"github.com/watchtide/watchtide/access/refusal"
	"github.com/watchtide/watchtide/gateway/internal/access"
	"github.com/watchtide/watchtide/gateway/internal/budget"
	"github.com/watchtide/watchtide/gateway/internal/quota"
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
		var why *refusal.Error
		if errors.As(err, &why) {
			s.Streams.Metrics.CredentialRefused(why.Reason)
			s.Lookup.RecordRefusal(ctx, why, s.Proxies.OfCall(ctx).Addr())
		}
		return nil, access.Refused(err)
	}
	s.Streams.Metrics.Identified(id.Mechanism)
	if wait := s.Quotas.Request(id); wait > 0 {
		return nil, s.Streams.TooManyRequests(id.Mechanism, wait)
	}
	answer := budget.AnswerOf(ctx)
	answer.Charge(quota.Payer(id, answer.Client()))
	return access.WithAction(access.WithIdentity(ctx, id), actions[method]), nil
}

// actions are the actions of calls, by method.
var actions = map[string]audit.Action{
	api.WatchService_WatchList_FullMethodName:      audit.Open,
	api.WatchService_ListResources_FullMethodName:  audit.List,
	api.WatchService_GetResource_FullMethodName:    audit.Get,
	api.WatchService_GetWatch_FullMethodName:       audit.Describe,
	api.WatchService_PutResource_FullMethodName:    audit.Write,
	api.WatchService_DeleteResource_FullMethodName: audit.Delete,
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
