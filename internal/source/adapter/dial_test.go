package adapter

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// check asks a server in memory for its health.
func check(t *testing.T, o DialOptions) error {
	t.Helper()
	listener := bufconn.Listen(1 << 10)
	server := grpc.NewServer(grpc.Creds(insecure.NewCredentials()))
	healthpb.RegisterHealthServer(server, health.NewServer())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-ended })
	o.Network = func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	conn, err := o.Client("passthrough:memory")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	return err
}

func TestClient(t *testing.T) {
	if err := check(t, DialOptions{MaxMessageBytes: 1 << 10, PingAfter: time.Minute, PingTimeout: time.Second}); err != nil {
		t.Error(err)
	}
	if err := check(t, DialOptions{MaxMessageBytes: 1}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message that is too large: %v", err)
	}
	if err := check(t, DialOptions{MaxMessageBytes: 1 << 10, TLS: &tls.Config{ServerName: "memory"}}); status.Code(err) != codes.Unavailable {
		t.Errorf("TLS with a server that has none: %v", err)
	}
}

// TestClientIsLazy: nothing is dialled before the first call.
func TestClientIsLazy(t *testing.T) {
	o := DialOptions{Network: func(context.Context, string) (net.Conn, error) {
		t.Error("it dials")
		return nil, errors.New("refused")
	}}
	conn, err := o.Client("passthrough:memory")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestValidHostPort(t *testing.T) {
	for address, want := range map[string]bool{
		"a:1": true, "[::1]:65535": true,
		"": false, "a": false, "a:": false, "a:0": false, "a:65536": false, ":1": false, "a/b:1": false, "a b:1": false,
	} {
		if got := ValidHostPort(address); got != want {
			t.Errorf("%q: got %t, want %t", address, got, want)
		}
	}
}
