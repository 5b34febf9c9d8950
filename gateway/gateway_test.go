package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

func TestRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true}, "a")
		r.Prime("a", 1)
		synctest.Wait()
		for path, contentType := range map[string]string{
			"/":                         "text/html",
			"/assets/boot.js":           "text/javascript",
			"/client.js":                "text/javascript",
			"/client.d.ts":              "text/typescript",
			"/openapi.json":             "application/json",
			"/healthz":                  "",
			"/readyz":                   "",
			"/metrics":                  "text/plain",
			"/v1/watches":               "application/json",
			"/v1/watches/a":             "application/json",
			"/v1/watches/a/resources":   "application/json",
			"/v1/events?watch=a":        "text/event-stream",
			"/v1/watches/a/events":      "text/event-stream",
			"/v1/watches/a/changes":     "application/json",
			"/v1/watches/a/events?x=%2": "application/problem+json",
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				x := r.request(method, path)
				if x.StatusCode == http.StatusNotFound || x.StatusCode == http.StatusMethodNotAllowed || !strings.HasPrefix(x.Header.Get("Content-Type"), contentType) {
					t.Errorf("%s %s: %s, %s", method, path, x.Status, x.Header.Get("Content-Type"))
				}
				x.Cancel()
			}
		}
	})
}

func TestNoMetricsUnlessConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a")
		x := r.get("/metrics")
		if p := refusedAs(t, x); p.Status != http.StatusNotFound {
			t.Errorf("got %+v", p)
		}
	})
}
