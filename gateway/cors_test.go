package gateway

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
)

const (
	ours   = "https://app.example.com"
	theirs = "https://app.example.com.evil.example"
)

func TestCORS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{AllowedOrigins: []string{"http://localhost:5173", ours}}}, "a")
		r.Prime("a", 1)
		for _, test := range []struct {
			path, origin, allow string
		}{
			{"/v1/events?watch=a", ours, ours},
			{"/v1/events?watch=a", "http://localhost:5173", "http://localhost:5173"},
			{"/v1/events?watch=a", theirs, ""},
			{"/v1/events?watch=a", "null", ""},
			{"/v1/events?watch=a", "HTTPS://APP.EXAMPLE.COM", ""},
			{"/v1/watches", ours, ours},
			{"/nowhere", ours, ours},          // otherwise a page could not read the problem
			{"/v1/events?wach=a", ours, ours}, // the same
		} {
			x := r.get(test.path, "Origin: "+test.origin)
			if got := x.Header.Get("Access-Control-Allow-Origin"); got != test.allow {
				t.Errorf("%s from %s: Access-Control-Allow-Origin %q, want %q", test.path, test.origin, got, test.allow)
			}
			if (x.Header.Get("Access-Control-Allow-Credentials") == "true") != (test.allow != "") {
				t.Errorf("%s from %s: credentials", test.path, test.origin)
			}
			if !varies(x.Header, "Origin") {
				t.Errorf("%s from %s: Vary %q", test.path, test.origin, x.Header.Values("Vary"))
			}
			x.Cancel()
		}
	})
}

func varies(h http.Header, name string) bool {
	return slices.ContainsFunc(h.Values("Vary"), func(v string) bool { return v == name || v == "Accept, Origin, Accept-Encoding" })
}

func TestPreflight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{AllowedOrigins: []string{ours}}}, "a")
		ask := func(origin string) *gatewaytest.Exchange {
			return r.request(http.MethodOptions, "/v1/events?watch=a", "Origin: "+origin,
				"Access-Control-Request-Method: GET", "Access-Control-Request-Headers: last-event-id")
		}
		x := ask(ours)
		if x.StatusCode != http.StatusNoContent || x.Header.Get("Access-Control-Allow-Origin") != ours ||
			x.Header.Get("Access-Control-Allow-Methods") != corsMethods || x.Header.Get("Access-Control-Allow-Headers") != corsHeaders {
			t.Errorf("ours: got %s %v", x.Status, x.Header)
		}
		x = ask(theirs)
		if x.Header.Get("Access-Control-Allow-Origin") != "" || x.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("theirs: got %s %v", x.Status, x.Header)
		}
	})
}

// TestHeadersOfPages: a page whose library for tracing adds headers to every request gets an answer,
// and so does one that adds headers of the configuration.
func TestHeadersOfPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{AllowedOrigins: []string{ours}, AllowedHeaders: []string{"X-Tenant", "sentry-trace"}}}, "a")
		x := r.request(http.MethodOptions, "/v1/events?watch=a", "Origin: "+ours, "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: baggage,traceparent,tracestate,x-tenant")
		allowed := strings.Split(x.Header.Get("Access-Control-Allow-Headers"), ", ")
		for _, name := range []string{"traceparent", "tracestate", "baggage", "X-Tenant", "sentry-trace", "Last-Event-ID", "Incremental"} {
			if !slices.Contains(allowed, name) {
				t.Errorf("pages may send %q: want %s too", allowed, name)
			}
		}
	})
}

func TestNoCORSUnlessConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		x := r.get("/v1/events?watch=a", "Origin: "+ours)
		if got := x.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("Access-Control-Allow-Origin: %q", got)
		}
		x = r.request(http.MethodOptions, "/v1/events", "Origin: "+ours, "Access-Control-Request-Method: GET")
		if x.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("preflight: %s", x.Status)
		}
	})
}

// TestEveryOriginMayImportTheClient: without a line in the log. An allowed origin may do so with
// credentials.
func TestEveryOriginMayImportTheClient(t *testing.T) {
	for _, allowed := range [][]string{nil, {ours}} {
		synctest.Test(t, func(t *testing.T) {
			logged := &lockedText{}
			r := newRig(t, Config{HTTPSettings: HTTPSettings{AllowedOrigins: allowed}, Logger: logTo(logged, slog.LevelInfo)}, "a")
			for _, path := range []string{"/client.js", "/client.d.ts"} {
				x := r.get(path, "Origin: "+theirs)
				if h := x.Header; x.StatusCode != http.StatusOK || !slices.Equal(h.Values("Access-Control-Allow-Origin"), []string{"*"}) || h.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s: %s, %v", path, x.Status, h)
				}
				x.Cancel()
			}
			x := r.get("/client.js", "Origin: "+ours)
			want := map[bool]string{false: "*", true: ours}[allowed != nil]
			if got := x.Header.Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{want}) {
				t.Errorf("Access-Control-Allow-Origin %q, want %q", got, want)
			}
			x.Cancel()
			if lines := linesWith(logged, "origin refused"); len(lines) != 0 {
				t.Errorf("logged: %q", lines)
			}
		})
	}
}
