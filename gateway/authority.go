package gateway

import (
	"net/http"

	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// checkHost refuses requests for a foreign host. Probes pass: they reveal little, and
// name whatever host their load balancer is configured with.
func (g *settings) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.hosts.Allow(r.Host) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			g.refusals.Host(r.Host, g.proxies.OfRequest(r).Addr())
			problem.Write(w, problem.Misdirected(r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}
