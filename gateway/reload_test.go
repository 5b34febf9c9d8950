package gateway

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func reloadWith(t *testing.T, g *Gateway, c Config) {
	t.Helper()
	if err := g.Reload(c); err != nil {
		t.Fatal(err)
	}
}

// A stream keeps the heartbeat with which it began, also beside streams of the same watch at
// the same position that began after a reload.
func TestReloadIsForNewStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{Heartbeat: 10 * time.Second}}, "a")
		r.Prime("a", 1)
		old := r.get("/v1/events?watch=a")
		old.Take()
		reloadWith(t, r.gateway, Config{StreamSettings: StreamSettings{Heartbeat: 4 * time.Second}})
		fresh := r.get("/v1/events?watch=a")
		if got := fresh.Take(); !strings.Contains(got, `"heartbeat_ms":4000`) {
			t.Errorf("hello after the reload: %q", got)
		}
		time.Sleep(9*time.Second + slack())
		if got := strings.Count(fresh.Take(), ": heartbeat"); got != 2 {
			t.Errorf("%d heartbeats in 9 s, want 2", got)
		}
		if got := old.Take(); got != "" {
			t.Errorf("the old stream got %q before its heartbeat", got)
		}
		r.Commit("a", 2, gatewaytest.Resource("k", 2, "1"))
		for _, x := range []*gatewaytest.Exchange{old, fresh} {
			if got := x.Take(); !strings.Contains(got, `"key":"k"`) {
				t.Errorf("got %q, want the change", got)
			}
		}
	})
}

// Streams share a group across reloads that say nothing else about streams.
func TestReloadWithoutChangesOfStreamsKeepsTheirGroup(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	r := newRig(t, Config{}, "a")
	before := r.gateway.now.Load().deps
	reloadWith(t, r.gateway, Config{StreamSettings: StreamSettings{MaxSubscribers: 5}})
	if r.gateway.now.Load().deps != before {
		t.Error("the settings of streams are others")
	}
	reloadWith(t, r.gateway, Config{StreamSettings: StreamSettings{MaxAge: time.Hour}})
	if after := r.gateway.now.Load().deps; after == before || after.Generation == before.Generation {
		t.Error("the settings of streams are the same")
	}
}

func TestReloadChangesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		r.Prime("a", 1)
		one, two := r.get("/v1/events?watch=a"), r.get("/v1/events?watch=a")
		one.Take()
		two.Take()
		reloadWith(t, r.gateway, Config{StreamSettings: StreamSettings{MaxSubscribers: 1}})
		if x := r.get("/v1/events?watch=a"); x.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("status %d, want 503", x.StatusCode)
		}
		for _, x := range []*gatewaytest.Exchange{one, two} {
			if over, _ := x.Over(); over {
				t.Error("an open stream was ended")
			}
		}
		reloadWith(t, r.gateway, Config{StreamSettings: StreamSettings{MaxSubscribers: 3}})
		if x := r.get("/v1/events?watch=a"); x.StatusCode != http.StatusOK {
			t.Errorf("status %d, want 200", x.StatusCode)
		}
	})
}

func TestReloadChangesLimitsOfViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		t.Cleanup(r.gateway.views.Close)
		r.Prime("a", 1)
		reloadWith(t, r.gateway, Config{Views: ViewLimits{Max: 1, Linger: time.Second}})
		one, two := r.get("/v1/events?watch=a&prefix=a"), r.get("/v1/events?watch=a&prefix=b")
		if one.StatusCode != http.StatusOK || two.StatusCode != http.StatusTooManyRequests {
			t.Errorf("status %d and %d, want 200 and 429", one.StatusCode, two.StatusCode)
		}
		reloadWith(t, r.gateway, Config{})
		if x := r.get("/v1/events?watch=a&prefix=b"); x.StatusCode != http.StatusOK {
			t.Errorf("status %d, want 200", x.StatusCode)
		}
	})
}

func TestReloadChangesHostsAndOrigins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "a")
		r.Prime("a", 1)
		calls := dialGRPC(t, r.gateway, grpc.WithAuthority("app.example.com"))
		foreign := func() (status int, origin string) {
			c := r.dial("GET /v1/watches HTTP/1.1\r\nHost: app.example.com\r\nOrigin: https://page.example.com\r\nConnection: close\r\n\r\n")
			answer, err := http.ReadResponse(c.Reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return answer.StatusCode, answer.Header.Get("Access-Control-Allow-Origin")
		}
		call := func() codes.Code {
			_, err := calls.ListWatches(t.Context(), &api.ListWatchesRequest{})
			return status.Code(err)
		}
		if code, origin := foreign(); code != http.StatusMisdirectedRequest || origin != "" || call() == codes.OK {
			t.Fatalf("before the reload: %d, origin %q, gRPC %v", code, origin, call())
		}
		reloadWith(t, r.gateway, Config{HTTPSettings: HTTPSettings{Hosts: []string{"app.example.com"}, AllowedOrigins: []string{"https://page.example.com"}}})
		if code, origin := foreign(); code != http.StatusOK || origin != "https://page.example.com" || call() != codes.OK {
			t.Errorf("after the reload: %d, origin %q, gRPC %v", code, origin, call())
		}
		reloadWith(t, r.gateway, Config{})
		if code, origin := foreign(); code != http.StatusMisdirectedRequest || origin != "" || call() == codes.OK {
			t.Errorf("after the second reload: %d, origin %q, gRPC %v", code, origin, call())
		}
	})
}

func TestReloadOfAnInvalidConfigurationChangesNothing(t *testing.T) {
	r := newRig(t, Config{StreamSettings: StreamSettings{Heartbeat: time.Second}}, "a")
	before := r.gateway.now.Load()
	if err := r.gateway.Reload(Config{StreamSettings: StreamSettings{Retry: -1}}); err == nil || !strings.Contains(err.Error(), "Retry") {
		t.Errorf("got %v, want an error that names Retry", err)
	}
	if r.gateway.now.Load() != before {
		t.Error("the settings were replaced")
	}
}

// A watch that a reload adds gets the time that a stale one has before it keeps traffic away.
func TestReadyzOfLateWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{StaleAllowed: time.Minute}}, "services")
		r.Prime("services", 1)
		r.Add(watch.Config{Name: "more", Late: true})
		r.Add(watch.Config{Name: "needed", Late: true, Required: true})
		wantReadiness(t, r, false)
		time.Sleep(time.Minute + 1)
		wantReadiness(t, r, false, "needed priming")
		r.Prime("needed", 1)
		wantReadiness(t, r, false)
	})
}

func TestOutcomeOfReloadsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		ready := func() string {
			_, text := r.operations("/readyz")
			return text
		}
		want := func(success, failure, last float64) {
			t.Helper()
			got := [3]float64{
				counter(t, r.gateway, "watchtide_config_reloads_total", "result", "success"),
				counter(t, r.gateway, "watchtide_config_reloads_total", "result", "failure"),
				counter(t, r.gateway, "watchtide_config_last_reload_successful"),
			}
			if got != [3]float64{success, failure, last} {
				t.Errorf("successes, failures, last: %v, want %v %v %v", got, success, failure, last)
			}
		}
		at := func() float64 {
			return counter(t, r.gateway, "watchtide_config_last_reload_success_timestamp_seconds")
		}
		began := float64(time.Now().Unix())
		want(0, 0, 1)
		time.Sleep(time.Minute)
		r.gateway.Reloaded(errors.New("gateway.yaml:2:3: wrong"))
		want(0, 1, 0)
		if at() != began {
			t.Errorf("the last success was at %v, want %v", at(), began)
		}
		if got := ready(); !strings.Contains(got, "is priming since") || !strings.Contains(got, `"configuration":"a newer configuration is not in effect, since 2000-01-01T00:01:00Z: gateway.yaml:2:3: wrong"`) {
			t.Errorf("not ready: got %s", got)
		}
		r.Prime("a", 1)
		synctest.Wait()
		if got := ready(); !strings.HasPrefix(got, "ready\n") || !strings.Contains(got, "gateway.yaml:2:3: wrong") {
			t.Errorf("ready: got %s", got)
		}
		r.gateway.Reloaded(nil)
		want(1, 1, 1)
		if at() != began+60 {
			t.Errorf("the last success was at %v, want %v", at(), began+60)
		}
		if got := ready(); got != "ready\n" {
			t.Errorf("after a success: got %s", got)
		}
	})
}

// operations asks the listener for operators.
func (r *rig) operations(path string) (int, string) {
	transport := &http.Transport{DialContext: r.private.Dial}
	defer transport.CloseIdleConnections()
	x := gatewaytest.Send(r.t, &http.Client{Transport: transport}, http.MethodGet, path)
	return x.StatusCode, x.Text()
}

// Requests of all kinds come while the gateway is reloaded; each is answered.
func TestRequestsDuringReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		synctest.Wait()
		var asking sync.WaitGroup
		for _, path := range []string{"/v1/events?watch=a&until=end_of_snapshot", "/v1/watches/a/resources", "/v1/watches/a/changes?wait=0s", "/readyz"} {
			asking.Go(func() {
				for range 50 {
					if x := r.get(path); x.StatusCode != http.StatusOK {
						t.Errorf("%s: status %d: %s", path, x.StatusCode, x.Text())
					}
				}
			})
		}
		asking.Go(func() {
			for range 50 {
				if _, err := r.client.ListResources(t.Context(), &api.ListResourcesRequest{Watch: "a"}); err != nil {
					t.Error(err)
				}
			}
		})
		for i := range 300 {
			reloadWith(t, r.gateway, Config{
				StreamSettings: StreamSettings{Heartbeat: time.Duration(1+i) * time.Second, SnapshotBudget: int64(1+i%3) << 20, CompressionCache: int64(1 + i%2), MaxSubscribers: 1000 + i, Drain: -1}, HTTPSettings: HTTPSettings{AnswerBudget: int64(1+i%2) << 20, BodyBudget: 1 << 20},
			})
		}
		asking.Wait()
	})
}

// TestReloadNeitherAddsNorRemovesAccess: nobody knows whose the streams are that began
// without it.
func TestReloadNeitherAddsNorRemovesAccess(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	with := Config{Access: &Access{Policy: access.EmptyPolicy()}}
	for _, c := range [][2]Config{{{}, with}, {with, {}}} {
		g := newRig(t, c[0], "a").gateway
		if err := g.Reload(c[1]); !errors.Is(err, errAccessChanges) {
			t.Errorf("from %v to %v: %v", c[0].Access, c[1].Access, err)
		}
		if err := g.Reload(c[0]); err != nil {
			t.Errorf("the same again: %v", err)
		}
	}
}

// Rules without a result are counted, also over reloads.
func TestFailuresOfRulesAreCounted(t *testing.T) {
	g := newGuard(t)
	g.static("ci", "staff")
	const fails = `principal.claims.tenant == "x"`
	r := newRig(t, Config{Access: g.access(map[string]string{"a": fails})}, "a")
	r.Prime("a", 1)
	if n := counter(t, r.gateway, "watchtide_rule_failures_total"); n != 0 {
		t.Errorf("%v failures at the start", n)
	}
	for want := 1.0; want < 4; want++ {
		for range 3 {
			if x := r.get("/v1/watches/a", g.as("ci")); x.StatusCode != http.StatusNotFound {
				t.Errorf("status %d", x.StatusCode)
			}
		}
		if n := counter(t, r.gateway, "watchtide_rule_failures_total"); n != want {
			t.Errorf("%v failures, want %v", n, want)
		}
		reloadWith(t, r.gateway, Config{Access: g.access(map[string]string{"a": fails})})
	}
}
