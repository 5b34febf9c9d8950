package gateway

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

const browserDelivery = "watchtide_browser_delivery_seconds"

// report sends a delivery report about one change, and returns the status of the answer.
func report(r *rig, watch string, revision int, agoMS, roundTripMS float64) int {
	return post(r.gateway, fmt.Sprintf(`{"round_trip_ms":%g,"painted":[{"watch":%q,"revision":"%d","ago_ms":%g}]}`, roundTripMS, watch, revision, agoMS)).Code
}

func post(g *Gateway, body string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "http://localhost"+deliveryPath, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, req)
	return w
}

// TestDeliveryIsMeasured checks that a report is counted from the commit of its change to the
// paint, and one about a change that is not known is not.
func TestDeliveryIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{DeliveryReports: true}}, "a")
		r.Prime("a", 1)
		synctest.Wait()
		if got := report(r, "a", 1, 0, 0); got != 204 {
			t.Fatalf("the first report: %d", got)
		}
		if n := counter(t, r.gateway, browserDelivery, "watch", "a"); n != -1 {
			t.Fatalf("%v changes are counted that nobody remembers", n)
		}
		r.Commit("a", 2, gatewaytest.Resource("k", 2, `1`))
		synctest.Wait()
		time.Sleep(500 * time.Millisecond)
		for _, revision := range []int{2, 1, 3, 1 << 40} { // the rest: before the first report, or not committed
			if got := report(r, "a", revision, 200, 100); got != 204 {
				t.Errorf("revision %d: %d", revision, got)
			}
		}
		// 500 ms less the 200 since the paint, less half of the round trip.
		if n, s := counter(t, r.gateway, browserDelivery, "watch", "a"), sum(t, r.gateway, browserDelivery); n != 1 || math.Abs(s-.25) > 1e-9 {
			t.Errorf("%v values, %v s together, want one of 0.25", n, s)
		}
		time.Sleep(time.Minute)
		report(r, "a", 2, 0, 0)
		if n := counter(t, r.gateway, browserDelivery, "watch", "a"); n != 1 {
			t.Errorf("%v values: a commit is remembered for longer than a minute", n)
		}
	})
}

// TestDeliveryReportsAreLimited checks that one client may report once per second, and another
// one is not concerned.
func TestDeliveryReportsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// httptest's requests come from 192.0.2.1.
		r := newRig(t, Config{HTTPSettings: HTTPSettings{DeliveryReports: true, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}, "a")
		const body = `{"painted":[{"watch":"a","revision":"1","ago_ms":0}]}`
		taken := 0
		for range 100 {
			if post(r.gateway, body, "X-Forwarded-For: 198.51.100.1").Code == 204 {
				taken++
			}
		}
		if taken != 10 {
			t.Errorf("%d reports at once, want those of 10 s", taken)
		}
		x := post(r.gateway, body, "X-Forwarded-For: 198.51.100.1")
		if x.Code != 429 || x.Header().Get("Retry-After") == "" {
			t.Errorf("%d %v", x.Code, x.Header())
		}
		if x := post(r.gateway, body, "X-Forwarded-For: 198.51.100.2"); x.Code != 204 {
			t.Errorf("another client: %d", x.Code)
		}
		time.Sleep(2 * time.Second)
		if x := post(r.gateway, body, "X-Forwarded-For: 198.51.100.1"); x.Code != 204 {
			t.Errorf("later: %d", x.Code)
		}
	})
}

// TestDeliveryReportsAreLimitedInAll checks that all clients together may send introspection.PerSecond,
// and that a client that sends too many takes nothing from the others.
func TestDeliveryReportsAreLimitedInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{DeliveryReports: true, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}, "a")
		send := func(client int) *httptest.ResponseRecorder {
			return post(r.gateway, `{"painted":[{"watch":"a","revision":"1","ago_ms":0}]}`, fmt.Sprintf("X-Forwarded-For: 10.0.%d.%d", client>>8, client&255))
		}
		for range 2000 {
			send(0)
		}
		taken := 0
		for client := range 1500 {
			if send(1+client).Code == 204 {
				taken++
			}
		}
		if want := 10*introspection.PerSecond - 10; taken != want { // 10 of the first client
			t.Errorf("%d reports at once, want %d", taken, want)
		}
		if x := send(5000); x.Code != 429 || x.Header().Get("Retry-After") != "1" || !strings.Contains(x.Body.String(), "all clients together") {
			t.Errorf("%d %v %s", x.Code, x.Header(), x.Body)
		}
		time.Sleep(time.Second)
		if x := send(5001); x.Code != 204 {
			t.Errorf("a second later: %d", x.Code)
		}
	})
}

// TestDeliveryOfRemovedWatches checks that the series of a watch, or of a template, ends with it,
// and begins at zero if it comes back.
func TestDeliveryOfRemovedWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{DeliveryReports: true}}, "a", "b")
		count := func(watch string) float64 { return counter(t, r.gateway, browserDelivery, "watch", watch) }
		for _, watch := range []string{"a", "b", "never-declared"} {
			r.gateway.metrics.Delivered(watch, time.Second)
		}
		if count("a") != 1 || count("b") != 1 || count("never-declared") != -1 {
			t.Errorf("%v, %v and %v values, want 1, 1 and no series", count("a"), count("b"), count("never-declared"))
		}
		r.Registry.Remove("a")
		if count("a") != -1 || count("b") != 1 {
			t.Errorf("%v and %v values after the removal, want no series and 1", count("a"), count("b"))
		}
		r.gateway.metrics.Delivered("a", time.Second) // a report that was on its way
		if count("a") != -1 {
			t.Error("a late report has made a series")
		}
	})
}

// TestDeliveryReportsNeedAccess checks that a client reports about watches that it may see, and
// that a report makes no watch.
func TestDeliveryReportsNeedAccess(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.DeliveryReports = true })
	body := func(watch string) string {
		return `{"painted":[{"watch":"` + watch + `","revision":"1","ago_ms":0}]}`
	}
	send := func(watch string, headers ...string) reply {
		return r.send(http.MethodPost, deliveryPath, body(watch), append(headers, "Content-Type: application/json")...)
	}
	send("orders", r.as("sam")...).want(t, 204, "")
	send("orders").want(t, 401, "")
	send("closed", r.as("ann")...).want(t, 404, "")
	made := r.made
	send("vault-eu", r.as("sam")...).want(t, 204, "")
	if r.made != made {
		t.Error("a report has made a watch")
	}
}

// TestDeliveryReportsAreOptIn checks that there is no such route unless configured.
func TestDeliveryReportsAreOptIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{AllowedOrigins: []string{ours}}}, "a")
		if got := report(r, "a", 1, 0, 0); got != 404 {
			t.Errorf("%d", got)
		}
		r = newRig(t, Config{HTTPSettings: HTTPSettings{AllowedOrigins: []string{ours}, DeliveryReports: true}}, "a")
		x := r.request(http.MethodOptions, deliveryPath, "Origin: "+ours, "Access-Control-Request-Method: POST")
		if got := x.Header.Get("Access-Control-Allow-Methods"); !strings.Contains(got, "POST") {
			t.Errorf("a page of another origin may use %q", got)
		}
	})
}
