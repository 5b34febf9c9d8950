package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// TestForeignHostIsRefused checks every route and every form in which HTTP/1.1 can
// name the host: no page can read or write through a name that was rebound to this
// machine.
func TestForeignHostIsRefused(t *testing.T) {
	r := newAPIRig(t, Config{HTTPSettings: HTTPSettings{Hosts: []string{"app.example.com"}}})
	address := strings.TrimPrefix(r.url, "http://")
	for _, path := range []string{
		"/", "/assets/boot.js", "/v1/watches", "/v1/watches/hosts", "/v1/events?watch=hosts", "/v1/watches/hosts/changes", "/v1/watches/hosts/resources",
		"/openapi.json", "/metrics", "/v1/subscribers", "/v1/series", "/nowhere",
	} {
		for _, request := range []string{
			"GET " + path + " HTTP/1.1\r\nHost: evil.example\r\n\r\n",
			"GET http://evil.example" + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"OPTIONS " + path + " HTTP/1.1\r\nHost: evil.example:80\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
		} {
			wantMisdirected(t, exchangeRaw(t, address, request), "evil.example")
		}
	}
	for _, method := range []string{"PUT", "DELETE"} {
		request := method + " /v1/watches/notes/resources/a HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"
		wantMisdirected(t, exchangeRaw(t, address, request), "evil.example")
	}
	for _, host := range []string{address, "localhost", "app.example.com:443", ""} {
		if got := exchangeRaw(t, address, "GET /v1/watches HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Errorf("host %q: %.200s", host, got)
		}
	}
	for path, want := range map[string]string{"/healthz": "200", "/readyz": "503"} { // silent is not primed
		if got := exchangeRaw(t, address, "GET "+path+" HTTP/1.1\r\nHost: evil.example\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%s: %.200s", path, got)
		}
	}
}

// exchangeRaw sends a request as it is and returns the raw answer.
func exchangeRaw(t *testing.T, address, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request = strings.Replace(request, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func wantMisdirected(t *testing.T, answer, host string) {
	t.Helper()
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	var p problem.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != 421 ||
		!strings.Contains(p.Detail, host) || !strings.Contains(p.Detail, "http.hosts") {
		t.Errorf("%v in %.300s, want a problem 421 that names %s and http.hosts", err, answer, host)
	}
	if !strings.HasPrefix(head, "HTTP/1.1 421 ") || !strings.Contains(head, "X-Content-Type-Options: nosniff") {
		t.Errorf("head %q", head)
	}
}

// TestForeignAuthorityIsRefused checks HTTP/2 and gRPC, where the name is in
// :authority.
func TestForeignAuthorityIsRefused(t *testing.T) {
	registry := watch.NewRegistry()
	t.Cleanup(registry.Close)
	g, err := New(Config{Registry: registry, HTTPSettings: HTTPSettings{Hosts: []string{"backend"}}, StreamSettings: StreamSettings{Drain: -1, DrainDelay: -1}})
	if err != nil {
		t.Fatal(err)
	}
	web, rpc := listenLoopback(t), listenLoopback(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, Listeners{HTTP: web, GRPC: rpc}) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for host, want := range map[string]int{"evil.example": 421, "backend:8080": 200, "localhost": 200, web.Addr().String(): 200} {
		if got := getHTTP2(t, web.Addr().String(), host); got != want {
			t.Errorf("HTTP/2, %s: %d, want %d", host, got, want)
		}
	}
	for host, want := range map[string]codes.Code{"evil.example:9090": codes.FailedPrecondition, "backend": codes.OK, rpc.Addr().String(): codes.OK} {
		unary, streaming := callGRPC(t, rpc.Addr().String(), host)
		if status.Code(unary) != want || want != codes.OK && !strings.Contains(unary.Error(), "http.hosts") {
			t.Errorf("gRPC, %s: %v, want %v", host, unary, want)
		}
		if want == codes.OK {
			want = codes.NotFound // there is no watch at all
		}
		if status.Code(streaming) != want {
			t.Errorf("gRPC stream, %s: %v, want %v", host, streaming, want)
		}
	}
}

func listenLoopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// getHTTP2 requests the watches over HTTP/2 without TLS, under the name of a host.
func getHTTP2(t *testing.T, address, host string) int {
	t.Helper()
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &p, TLSClientConfig: &tls.Config{}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/v1/watches", address), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.ProtoMajor != 2 {
		t.Errorf("%s", res.Proto)
	}
	return res.StatusCode
}

// callGRPC makes a call of each kind under the name of a host.
func callGRPC(t *testing.T, address, host string) (unary, streaming error) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(host))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := api.NewWatchServiceClient(conn)
	_, unary = client.ListWatches(t.Context(), &api.ListWatchesRequest{})
	events, err := client.WatchList(t.Context(), &api.WatchListRequest{Watch: "nosuch"})
	if err != nil {
		t.Fatal(err)
	}
	_, streaming = events.Recv()
	return unary, streaming
}

func TestConfigOfHosts(t *testing.T) {
	if _, err := New(Config{Registry: watch.NewRegistry(), HTTPSettings: HTTPSettings{Hosts: []string{"a:80"}}}); err == nil || !strings.Contains(err.Error(), "Hosts") {
		t.Errorf("New takes a host with a port: %v", err)
	}
}
