package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip" // clients name it once it is imported
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// TestUncompressed: no answer about a watch that is not to be compressed is, over any door,
// and no stream that it is a part of; those about others are.
func TestUncompressed(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.Uncompressed = []string{"vault", "vault-{region}"} })
	for path, want := range map[string]string{
		"/v1/watches/orders/events?until=end_of_snapshot":              "gzip",
		"/v1/watches/vault/events?until=end_of_snapshot":               "",
		"/v1/watches/vault/events?until=end_of_snapshot&format=ndjson": "",
		"/v1/watches/vault/events?until=end_of_snapshot&filter=true":   "",
		"/v1/watches/vault-eu/events?until=end_of_snapshot":            "",
		"/v1/events?watch=orders&watch=vault&until=end_of_snapshot":    "",
		"/v1/watches/vault/resources":                                  "",
		"/v1/watches/orders/resources/o_1":                             "",
		"/v1/watches/vault/changes?wait=1ms":                           "",
	} {
		for _, accepts := range []string{"gzip", "zstd", "zstd, gzip"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				got := r.send(method, path, "", append(r.as("sam"), "Accept-Encoding: "+accepts)...)
				if encoding := got.Header.Get("Content-Encoding"); (encoding == "") != (want == "") || encoding != "" && !strings.HasPrefix(accepts, encoding) {
					t.Errorf("%s %s with %s: %s, Content-Encoding %q, want %q", method, path, accepts, got.Status, encoding, want)
				}
			}
		}
	}
	r.send(http.MethodPut, "/v1/watches/vault/resources/k", "1", append(r.as("sam"), "Accept-Encoding: gzip")...).want(t, 201, "")
}

// TestCompressionAfterAReload is that of the newer configuration.
func TestCompressionAfterAReload(t *testing.T) {
	var started Config
	r := newGuarded(t, func(c *Config) { started = *c })
	encoding := func() string {
		t.Helper()
		return r.get("/v1/watches/orders/events?until=end_of_snapshot", append(r.as("sam"), "Accept-Encoding: gzip")...).Header.Get("Content-Encoding")
	}
	if got := encoding(); got != "gzip" {
		t.Errorf("before: %q", got)
	}
	started.Uncompressed = []string{"orders"}
	if err := r.gateway.Reload(started); err != nil {
		t.Fatal(err)
	}
	if got := encoding(); got != "" {
		t.Errorf("after: %q", got)
	}
}

// received notes what is compressed of what a client receives.
type received struct {
	mu         sync.Mutex
	messages   int
	compressed []string
}

func (*received) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*received) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*received) HandleConn(context.Context, stats.ConnStats)                       {}
func (r *received) HandleRPC(_ context.Context, s stats.RPCStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s := s.(type) {
	case *stats.InHeader:
		if s.Compression != "" && s.Compression != "identity" {
			r.compressed = append(r.compressed, s.Compression)
		}
	case *stats.InPayload:
		r.messages++
	}
}

// TestGRPCIsNotCompressed, also if the program around the gateway can compress, and its client
// says that it can read that. A call that is itself compressed is refused.
func TestGRPCIsNotCompressed(t *testing.T) {
	r := newGuarded(t, nil)
	in := &received{}
	client := dialGRPC(t, r.gateway, grpc.WithStatsHandler(in))
	ctx := r.over("sam")
	if _, err := client.ListResources(ctx, &api.ListResourcesRequest{Watch: "orders"}); err != nil {
		t.Error(err)
	}
	if _, err := client.ListResources(ctx, &api.ListResourcesRequest{Watch: "orders"}, grpc.UseCompressor(gzip.Name)); status.Code(err) != codes.Unimplemented {
		t.Errorf("a compressed call: %v", err)
	}
	call, err := client.WatchList(ctx, &api.WatchListRequest{Watch: "orders", UntilEndOfSnapshot: true})
	for err == nil {
		_, err = call.Recv()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.messages < 3 || len(in.compressed) > 0 {
		t.Errorf("%d messages, compressed with %q", in.messages, in.compressed)
	}
}
