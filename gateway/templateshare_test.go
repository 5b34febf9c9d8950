package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const shareText = "this client uses 3 watches of this kind, of 3 at most: close some, or come back later"

// TestClientHasAShareOfATemplate: an address that has it gets 429 at every door, also for watches
// that others follow, and others are served.
func TestClientHasAShareOfATemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, behindProxy(Config{engine: gatewaytest.NewViews(t)}), "a")
		r.Prime("a", 1)
		var connected atomic.Int64
		addTemplate(t, r.Registry, template(4, &connected))
		const greedy, other = "X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 198.51.100.2"
		var open []*gatewaytest.Exchange
		for i := range 3 {
			open = append(open, r.get(fmt.Sprint("/v1/watches/t-", i, "/events"), greedy))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, path := range []string{
			"/v1/watches/t-b/events", "/v1/events?watch=a&watch=t-b", "/v1/watches/t-b/changes", "/v1/watches/t-b/resources",
			"/v1/watches/t-b/resources/name", "/v1/watches/t-b", "/v1/watches/t-b/resources?filter=revision+%3D%3D+1",
		} {
			x := r.get(path, greedy)
			if x.StatusCode != http.StatusTooManyRequests || x.Header.Get("Retry-After") == "" || !strings.Contains(x.Text(), shareText) {
				t.Errorf("%s: %d %v %s", path, x.StatusCode, x.Header, x.Text())
			}
		}
		browser := r.get("/v1/events?watch=t-b", greedy, eventStream)
		if got := browser.Text(); browser.StatusCode != 200 || !strings.Contains(got, `"reason":"overloaded"`) || !strings.Contains(got, ": "+shareText) {
			t.Errorf("a browser: %d %s", browser.StatusCode, got)
		}
		for transport, want := range map[string]float64{"sse": 3, "poll": 1} {
			if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", transport, "reason", "client_template"); n != want {
				t.Errorf("%s: %v refusals are counted, want %v", transport, n, want)
			}
		}
		mine := r.get("/v1/watches/t-b/events", other)
		synctest.Wait()
		wantOpen(t, mine)
		for _, path := range []string{"/v1/watches/t-b/events", "/v1/watches/t-b/changes"} { // it would live on what another one has opened
			if x := r.get(path, greedy); x.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s of another client: %d %s", path, x.StatusCode, x.Text())
			}
		}
		if x := r.get("/v1/watches/t-0/resources", greedy); x.StatusCode != 200 {
			t.Errorf("a watch that it follows: %d", x.StatusCode)
		}
		mine.Cancel()
		open[0].Cancel()
		time.Sleep(5 * time.Second)
		if x := r.get("/v1/watches/t-b/events?until=end_of_snapshot", greedy); x.StatusCode != 200 {
			t.Errorf("after it has left one: %d %s", x.StatusCode, x.Text())
		}
	})
}

// TestPrincipalHasAShareOfATemplate: it counts for the principal, not for its address.
func TestPrincipalHasAShareOfATemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t)
		g.static("sam", "staff")
		g.static("ann", "staff")
		r := newRig(t, Config{Access: g.access(wholeWatches("a", "t-{x}"))}, "a")
		var connected atomic.Int64
		addTemplate(t, r.Registry, template(4, &connected))
		for i := range 3 {
			r.get(fmt.Sprint("/v1/watches/t-", i, "/events"), g.as("sam"))
		}
		synctest.Wait()
		for _, path := range []string{"/v1/watches/t-b/events", "/v1/watches/t-b/resources", "/v1/watches/t-b/changes", "/v1/watches/t-b"} {
			if x := r.get(path, g.as("sam")); x.StatusCode != http.StatusTooManyRequests || !strings.Contains(x.Text(), shareText) {
				t.Errorf("%s: %d %s", path, x.StatusCode, x.Text())
			}
		}
		if x := r.get("/v1/watches/t-b/resources"); x.StatusCode != http.StatusUnauthorized && x.StatusCode != http.StatusNotFound {
			t.Errorf("without a credential: %d", x.StatusCode)
		}
		wantOpen(t, r.get("/v1/watches/t-b/events", g.as("ann")))
	})
}

// TestShareOfATemplateOverGRPC: calls and streams count together.
func TestShareOfATemplateOverGRPC(t *testing.T) {
	r := newAPIRig(t, Config{StreamSettings: StreamSettings{PrimeWait: time.Minute}})
	var connected atomic.Int64
	c := template(4, &connected)
	c.MaxPerClient = 1
	addTemplate(t, r.registry, c)
	call, err := r.grpc.WatchList(t.Context(), &api.WatchListRequest{Watch: "t-a"})
	if err == nil {
		_, err = call.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.grpc.ListResources(t.Context(), &api.ListResourcesRequest{Watch: "t-a"}); err != nil {
		t.Errorf("a list of the same: %v", err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "this client uses 1 watches of this kind, of 1 at most") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = r.grpc.ListResources(t.Context(), &api.ListResourcesRequest{Watch: "t-b"})
	refused("a list", err)
	_, err = r.grpc.GetWatch(t.Context(), &api.GetWatchRequest{Watch: "t-b"})
	refused("a watch", err)
	_, err = r.grpc.GetResource(t.Context(), &api.GetResourceRequest{Watch: "t-b", Key: "name"})
	refused("a resource", err)
	other, err := r.grpc.WatchList(t.Context(), &api.WatchListRequest{Watch: "t-b"})
	if err == nil {
		_, err = other.Recv()
	}
	refused("a stream", err)
	if n := counter(t, r.gateway, "watchtide_refusals_total", "transport", "grpc", "reason", "client_template"); n != 1 {
		t.Errorf("%v refusals are counted", n)
	}
}
