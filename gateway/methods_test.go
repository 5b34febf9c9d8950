package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestEveryRouteSaysItsMethods: a method that a path does not have, OPTIONS among them, is refused
// with those that it has.
func TestEveryRouteSaysItsMethods(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	g, err := New(Config{Registry: registry, Metrics: true, HTTPSettings: HTTPSettings{DeliveryReports: true}, Profiles: http.NotFoundHandler(), Access: &Access{Policy: access.EmptyPolicy()}})
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string][]string{}
	operators := g.now.Load().operators
	_ = chi.Walk(operators.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes[route] = append(routes[route], method)
		return nil
	})
	if len(routes) < 25 {
		t.Fatalf("%d routes", len(routes))
	}
	for route, methods := range routes {
		path := strings.NewReplacer("{watch}", "notes", "{stream}", "s", "{key}", "a%2Fb", "*", "").Replace(route)
		for _, method := range []string{"OPTIONS", "PATCH", "TRACE", "get", "PROPFIND", "GET", "HEAD", "POST", "PUT", "DELETE"} {
			if slices.Contains(methods, method) {
				continue
			}
			w := httptest.NewRecorder()
			operators.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, nil))
			allow := strings.Split(w.Header().Get("Allow"), ", ")
			slices.Sort(allow)
			slices.Sort(methods)
			if w.Code != http.StatusMethodNotAllowed || !slices.Equal(allow, methods) || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %d, Allow %q, want %q", method, path, w.Code, allow, methods)
			}
		}
	}
}
