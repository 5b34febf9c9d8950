package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// gatewayConfig has the settings that differ from the defaults: the address of the
// upstream, and the pump. Two watches exist only for requests that name them.
const gatewayConfig = `
http: { listen: "127.0.0.1:0" }
grpc: { listen: "127.0.0.1:0" }
stream: { pump: %s }
sources:
  bench: { type: grpc, address: %q }
watches:
  %s: { source: bench }
  nodes: { source: bench, prime: false }
  notes: { source: bench, prime: false }
`

// gateway is this repository's gateway as it is shipped, with one of its pumps.
// The bench is its upstream: a gRPC server that speaks WatchList.
func gateway(pump string) Peer {
	return Peer{Name: "gateway, " + pump, Start: func(ctx context.Context, o Options) (*Server, error) {
		up, err := serveUpstream(o)
		if err != nil {
			return nil, err
		}
		s, err := startGateway(ctx, o, pump, up)
		if err != nil {
			up.stop()
		}
		return s, err
	}}
}

func startGateway(ctx context.Context, o Options, pump string, up *upstream) (*Server, error) {
	program, err := build(ctx, o, product, "cmd/gateway")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.WorkDir, "gateway.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, gatewayConfig, pump, up.address, watch), 0o644); err != nil {
		return nil, err
	}
	p, err := start(ctx, o, regexp.MustCompile(`listening\b.*\bhttp"?[=:]"?([0-9.:]+)`), program, "serve", "--config", file)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Address: p.words[1], PIDs: []int{p.cmd.Process.Pid},
		Request: get("/v1/events?watch=" + watch), Marker: []byte("\nevent: upsert\n"),
		Several:   get("/v1/events?watch=" + watch + "&watch=nodes&watch=notes"),
		Upstreams: up.streams, Publish: up.publish,
		Stop: func() error {
			up.stop() // first, or the gateway waits for clients to read its goodbyes
			return p.stop()
		},
	}
	if o.Resources > 0 {
		s.Snapshot = getAll("/v1/events?watch=" + watch + "&until=end_of_snapshot")
	}
	if err := awaitReady(ctx, s.Address); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// awaitReady returns when the gateway reports that its watch is primed.
func awaitReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return err
		}
		r.Close = true // no connection stays behind
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return fmt.Errorf("the gateway is not ready: %w", err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway is not ready: /readyz answers %s", res.Status)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
