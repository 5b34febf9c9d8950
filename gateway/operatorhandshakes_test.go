package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestHandshakesWithOperators: those of the listener for operators are within the same limits as all others.
func TestHandshakesWithOperators(t *testing.T) {
	secure, roots := certificate(t)
	registry := watch.NewRegistry()
	defer registry.Close()
	g, err := New(Config{
		Registry: registry, Metrics: true, Logger: slog.New(slog.DiscardHandler),
		HTTPSettings: HTTPSettings{MaxHandshakesPerClient: 2}, StreamSettings: StreamSettings{Drain: -1, DrainDelay: -1, Pump: pumpUnderTest()},
	})
	if err != nil {
		t.Fatal(err)
	}
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	operations, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- g.Serve(ctx, Listeners{HTTP: public, Operations: operations, OperationsTLS: secure})
	}()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for i := range 2 {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: i > 0}
		response, err := (&http.Client{Transport: transport}).Get("https://" + operations.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		transport.CloseIdleConnections()
		if response.StatusCode != http.StatusOK || response.ProtoMajor != 1+i {
			t.Errorf("%s, %s", response.Proto, response.Status)
		}
	}
	for i := range 3 { // say nothing
		conn, err := net.Dial("tcp", operations.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i < 2 {
			continue
		}
		_ = conn.SetReadDeadline(time.Now().Add(netconn.HandshakeTimeout / 2)) // it is open
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("handshake %d of a client that may have two is not refused: %v", i+1, err)
		}
	}
}
