package gateway

import (
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// healthFirst reserves connections beyond the limit for health checks. Each serves
// one request.
func (g *settings) healthFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := g.doors.ReservedFor(r)
		if why == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		switch path := r.URL.Path; {
		case path == "/healthz", path == "/readyz":
			next.ServeHTTP(w, r)
		case strings.HasSuffix(path, "/events") && !strings.Contains(path, "/resources/"):
			next.ServeHTTP(w, r) // a refusal that a browser understands
		default:
			problem.Write(w, why.Problem(2*g.deps.RetryHint()))
		}
	})
}
