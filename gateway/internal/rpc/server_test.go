package rpc

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestRecovered checks that a panic ends one call, not the process.
func TestRecovered(t *testing.T) {
	err := problem.Recovered(func() error { panic("boom") })
	if err == nil || !strings.Contains(err.Error(), "panic: boom") {
		t.Errorf("got %v", err)
	}
	if s := status.Convert(statusOf(err)); s.Code() != codes.Internal || strings.Contains(s.Message(), "boom") {
		t.Errorf("the client gets %v", s)
	}
}

func TestInterceptUnaryStopsPanics(t *testing.T) {
	var s current = func() *server {
		return &server{Deps: Deps{Streams: &session.Deps{Log: slog.New(slog.DiscardHandler)}}}
	}
	_, err := s.interceptUnary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/x"},
		func(context.Context, any) (any, error) { panic("boom") })
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
}
