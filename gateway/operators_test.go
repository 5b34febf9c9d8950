package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

// secrets are the internals of the upstreams below.
var secrets = []string{"10.9.8.7", "/etc/secret.creds", "payroll"}

var errSecret = errors.New("dial tcp 10.9.8.7:4222: connection refused (credentials /etc/secret.creds, bucket payroll)")

// gatewayWithSecrets serves three watches over two real listeners: lost was primed
// and has lost its upstream, never has not been primed, and says has an upstream
// that is itself stale.
func gatewayWithSecrets(t *testing.T, c Config) (public, operations string, g *Gateway) {
	t.Helper()
	c.Registry, c.Drain, c.DrainDelay, c.PrimeWait, c.Metrics = streamwatch.NewRegistry(), -1, -1, 20*time.Millisecond, true
	t.Cleanup(c.Registry.Close)
	add := func(name string, watch stream.SourceFunc) {
		if _, err := c.Registry.Add(streamwatch.Config{Name: name, SourceName: "secret", SourceType: "nats", Source: watch, StaleAfter: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	primed := false
	add("lost", func(_ context.Context, _ stream.Resume, sink stream.Sink) error {
		if primed {
			return errSecret
		}
		primed = true
		return errors.Join(sink.Reset("e1"), sink.Upsert(gatewaytest.Resource("k", 1, "1")), sink.Commit(1), errSecret)
	})
	add("never", func(context.Context, stream.Resume, stream.Sink) error { return errSecret })
	add("says", func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		err := errors.Join(sink.Reset("e1"), sink.Commit(1), sink.Status(stream.Stale, errSecret.Error()))
		<-ctx.Done()
		return err
	})
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lost", "says"} {
		w, _ := c.Registry.Watch(name)
		for w.Status().State != stream.Stale {
			<-time.After(time.Millisecond)
		}
	}
	for never, _ := c.Registry.Watch("never"); never.Upstream().LastError == ""; {
		<-time.After(time.Millisecond)
	}
	web, ops := listenLoopback(t), listenLoopback(t)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, Listeners{HTTP: web, Operations: ops}) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return "http://" + web.Addr().String(), "http://" + ops.Addr().String(), g
}

// proxied returns a configuration that indicates a proxy in front.
func proxied() Config { return Config{HTTPSettings: HTTPSettings{Hosts: []string{"app.example.com"}}} }

func getText(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// TestPublicListenerHidesSecrets checks that no public answer names an address, a
// file or a bucket of an upstream, or a client.
func TestPublicListenerHidesSecrets(t *testing.T) {
	public, _, g := gatewayWithSecrets(t, proxied())
	for path, want := range map[string]string{
		"/v1/watches":                   "200 the upstream is unreachable or refuses the watch",
		"/v1/watches/lost":              `200 "last_error":"the upstream is unreachable or refuses the watch"`,
		"/v1/watches/never":             "200 unreachable",
		"/v1/watches/says":              "200 the upstream says that it is stale",
		"/v1/watches/never/resources":   "503 unreachable",
		"/v1/watches/never/resources/k": "503 unreachable",
		"/v1/watches/never/changes":     "503 unreachable",
		"/v1/events?watch=never&until=" + session.UntilEndOfSnapshot: "503 unreachable",
		"/v1/events?watch=lost&until=" + session.UntilEndOfSnapshot:  `200 "reason":"the upstream is unreachable`,
		"/v1/events?watch=says&until=" + session.UntilEndOfSnapshot:  `200 "reason":"the upstream says that it is stale"`,
		"/readyz":         "503 not ready",
		"/healthz":        "200 ok",
		"/metrics":        "404 nothing",
		"/v1/subscribers": "404 nothing",
		"/v1/series":      "404 nothing",
		"/debug/pprof/":   "404 nothing",
	} {
		code, text := getText(t, public+path)
		wantCode, wantText, _ := strings.Cut(want, " ")
		if fmt.Sprint(code) != wantCode || !strings.Contains(text, wantText) {
			t.Errorf("%s: %d %s, want %s", path, code, text, want)
		}
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s names %s: %s", path, secret, text)
			}
		}
		if path == "/readyz" && (strings.Contains(text, "lost") || strings.Contains(text, "never") || strings.Contains(text, "since")) {
			t.Errorf("/readyz names watches: %s", text)
		}
	}
	answer, err := g.now.Load().unary.Service.ListWatches(t.Context(), &api.ListWatchesRequest{})
	if err != nil || strings.Contains(fmt.Sprint(answer), "10.9.8.7") {
		t.Errorf("ListWatches over gRPC: %v, %v", answer, err)
	}
}

// TestOperationsListenerShowsEverything checks that operators get the full
// reasons, besides everything that is public.
func TestOperationsListenerShowsEverything(t *testing.T) {
	c := proxied()
	c.Profiles = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "profile of ", r.URL.Path) })
	_, operations, _ := gatewayWithSecrets(t, c)
	for path, want := range map[string]string{
		"/v1/watches/lost":           "200 " + errSecret.Error(),
		"/v1/watches/says":           "200 the upstream says: " + errSecret.Error(),
		"/readyz":                    "503 (" + errSecret.Error() + ")",
		"/healthz":                   "200 ok",
		"/metrics":                   "200 watchtide_watch_state",
		"/v1/subscribers":            `200 "detail":"` + errSecret.Error(),
		"/v1/series":                 `200 {"instance":`,
		"/debug/pprof/":              "200 profile of /debug/pprof/",
		"/debug/pprof/heap":          "200 profile of /debug/pprof/heap",
		"/":                          "200 <",
		"/v1/watches/lost/resources": `200 "count":`,
	} {
		code, text := getText(t, operations+path)
		wantCode, wantText, _ := strings.Cut(want, " ")
		if fmt.Sprint(code) != wantCode || !strings.Contains(text, wantText) {
			t.Errorf("%s: %d %.500s, want %s", path, code, text, want)
		}
	}
}

// TestLoopbackIsForOperators checks that users of this machine get everything that
// operators get, except the profiles, unless a proxy is in front.
func TestLoopbackIsForOperators(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   int
	}{
		"alone":                  {Config{}, http.StatusOK},
		"with names":             {proxied(), http.StatusNotFound},
		"behind a trusted proxy": {Config{HTTPSettings: HTTPSettings{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Profiles = http.NotFoundHandler()
			public, _, _ := gatewayWithSecrets(t, c.config)
			for _, path := range []string{"/v1/subscribers", "/v1/series", "/metrics"} {
				if code, text := getText(t, public+path); code != c.want {
					t.Errorf("%s: %d %.200s, want %d", path, code, text, c.want)
				}
			}
			_, text := getText(t, public+"/v1/watches/lost")
			if full := strings.Contains(text, "10.9.8.7"); full != (c.want == http.StatusOK) {
				t.Errorf("in full is %t: %s", full, text)
			}
			var p problem.Problem
			if _, text := getText(t, public+"/debug/pprof/heap"); json.Unmarshal([]byte(text), &p) != nil || p.Status != http.StatusNotFound {
				t.Errorf("profiles on the public listener: %s", text)
			}
		})
	}
}
