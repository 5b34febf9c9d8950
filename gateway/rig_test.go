package gateway

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/shard"
)

// rig is a gateway behind the real net/http server on an in-memory network, with
// scripted sources and the real net/http client. In a synctest bubble all of it runs
// in fake time. After settle, helpers see everything that can happen without time
// passing.
type rig struct {
	*gatewaytest.Watches
	t       *testing.T
	gateway *Gateway
	sockets *gatewaytest.Sockets // nil: the goroutine pump is tested
	network *gatewaytest.Network
	rpc     *gatewaytest.Network
	private *gatewaytest.Network // for operators
	client  *http.Client
	accepts string             // Accept-Encoding of requests; empty: none
	stop    context.CancelFunc // begins the shutdown
	hurry   context.CancelFunc // begins it without a delay
	served  chan error         // what Serve returned
}

// newRig starts a gateway that serves the named watches.
func newRig(t *testing.T, c Config, watches ...string) *rig {
	t.Helper()
	r := &rig{Watches: gatewaytest.NewWatches(t, watches...), t: t, network: gatewaytest.NewNetwork(), rpc: gatewaytest.NewNetwork(), private: gatewaytest.NewNetwork(), served: make(chan error, 1)}
	c.Registry, c.DrainDelay = r.Registry, cmp.Or(c.DrainDelay, -1)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	c.Pump, c.Instance = pumpUnderTest(), "test"
	if r.gateway, err = New(c); err != nil {
		t.Fatal(err)
	}
	r.gateway.hijacked = session.NewHijacked(gatewaytest.NewHangupWatcher)
	if c.Pump == PumpShards {
		r.sockets = gatewaytest.NewSockets()
		r.gateway.shards = shard.New(r.gateway.now.Load().deps, r.sockets, 2, nil)
	}
	ctx, end := context.WithCancelCause(context.Background())
	r.stop, r.hurry = func() { end(nil) }, func() { end(fmt.Errorf("a test: %w", ErrNoDelay)) }
	go func() {
		r.served <- r.gateway.Serve(ctx, Listeners{HTTP: r.network, GRPC: r.rpc, Operations: r.private})
	}()
	transport := &http.Transport{DialContext: r.network.Dial, DisableCompression: true}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		r.stop()
		if err := <-r.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// get sends a request and reads the answer as it arrives. Headers are "Name: value".
func (r *rig) get(path string, headers ...string) *gatewaytest.Exchange {
	r.t.Helper()
	return r.request(http.MethodGet, path, headers...)
}

func (r *rig) request(method, path string, headers ...string) *gatewaytest.Exchange {
	r.t.Helper()
	if r.accepts != "" {
		headers = append(headers, "Accept-Encoding: "+r.accepts)
	}
	return gatewaytest.Send(r.t, r.client, method, path, headers...)
}

// rawConn is a client that writes HTTP itself.
type rawConn struct {
	net.Conn
	*bufio.Reader
}

// dial opens a connection and sends the given bytes as they are.
func (r *rig) dial(request string) *rawConn {
	r.t.Helper()
	c, err := r.network.Dial(context.Background(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		r.t.Fatal(err)
	}
	return &rawConn{c, bufio.NewReader(c)}
}

// Read implements net.Conn.
func (c *rawConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// rawGet returns a request head of HTTP/1.1.
func rawGet(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: gateway\r\nAccept: text/event-stream\r\n\r\n"
}
