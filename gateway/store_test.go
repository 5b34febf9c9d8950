package gateway

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// addStore adds a watch of the embedded store.
func (r *apiRig) addStore(name string) {
	r.t.Helper()
	s := store.New(store.Config{})
	r.add(watch.Config{Name: name, SourceName: "embedded", Source: s.Source(name), Writer: s.Writer(name)})
	r.primed(name)
}

// TestStore runs the unary API against the embedded store.
func TestStore(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.addStore("drafts")
	const path = "/v1/watches/drafts/resources"
	for i, key := range []string{"a", "with%2Fslash", "%FF%00", "new%0Aline"} {
		body := fmt.Sprintf(`{"n": %d, "big": 9007199254740993}`, i)
		put := r.send("PUT", path+"/"+key, body, "If-None-Match: *")
		put.want(t, 201, "")
		r.get(path+"/"+key).want(t, 200, put.text)
		if !strings.Contains(put.text, `"value":`+body+"}") || put.Header.Get("ETag") == "" {
			t.Errorf("%s: %s", key, put.text)
		}
		r.send("PUT", path+"/"+key, `1`, "If-None-Match: *").wantProblem(t, 412, "If-None-Match", "none was expected")
		r.send("PUT", path+"/"+key, `1`, "If-Match: "+put.Header.Get("ETag")).want(t, 200, "")
		r.send("PUT", path+"/"+key, `2`, "If-Match: "+put.Header.Get("ETag")).wantProblem(t, 412, "If-Match", "is at revision")
		r.send("PUT", path+"/"+key+"?validate_only=true", `3`).want(t, 200, "")
		if got := r.get(path + "/" + key); !strings.Contains(got.text, `"value":1}`) {
			t.Errorf("%s: %s", key, got.text)
		}
	}
	if got := r.get(path); strings.Count(got.text, `"key":`) != 4 || !strings.Contains(got.text, `"count":4`) {
		t.Errorf("list: %s", got.text)
	}
	r.send("DELETE", path+"/a", "").want(t, 200, `{"deleted":true}`+"\n")
	r.get(path+"/a").want(t, 404, "")
	r.send("DELETE", path+"/a", "").want(t, 200, `{"deleted":false}`+"\n")
}

func TestStoreLimits(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.addStore("drafts")
	value := `"` + strings.Repeat("x", store.DefaultMaxValueBytes-2) + `"`
	r.send("PUT", "/v1/watches/drafts/resources/a", value).want(t, 201, "")
	if got := r.get("/v1/watches/drafts/resources/a"); !strings.Contains(got.text, `"value":`+value+"}") {
		t.Error("1 MiB did not come back as it was")
	}
	r.send("PUT", "/v1/watches/drafts/resources/a", `"x`+value[1:]).wantProblem(t, 413, "", "too large")
	r.send("PUT", "/v1/watches/drafts/resources/", `1`).wantProblem(t, 400, "key", "key")
}

// TestStoreWriteThenRead checks that a write is answered once both logs have it, the
// store's and the watch's.
func TestStoreWriteThenRead(t *testing.T) {
	r := newAPIRig(t, Config{})
	r.addStore("drafts")
	for i := range 100 {
		put := r.send("PUT", "/v1/watches/drafts/resources/a", fmt.Sprint(i))
		r.get("/v1/watches/drafts/resources/a").want(t, 200, put.text)
	}
}

// TestServeGRPC checks that the server that Serve runs has the options of the
// service: its message limit is not gRPC's own of 4 MiB.
func TestServeGRPC(t *testing.T) {
	registry := watch.NewRegistry()
	t.Cleanup(registry.Close)
	g, err := New(Config{Registry: registry, StreamSettings: StreamSettings{DrainDelay: -1, Drain: -1}})
	if err != nil {
		t.Fatal(err)
	}
	notes := newNotebook()
	if _, err := registry.Add(streamConfig("notes", notes)); err != nil {
		t.Fatal(err)
	}
	web, rpc := gatewaytest.NewNetwork(), gatewaytest.NewNetwork()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, Listeners{HTTP: web, GRPC: rpc}) }()
	conn, err := grpc.NewClient("passthrough:gateway", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return rpc.Dial(ctx, "", "") }))
	if err != nil {
		t.Fatal(err)
	}
	client := api.NewWatchServiceClient(conn)
	_, err = client.PutResource(ctx, &api.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte(`"` + strings.Repeat("x", 5<<20) + `"`)})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "the limit is 2097152") {
		t.Errorf("5 MiB: %.200v", err)
	}
	conn.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
