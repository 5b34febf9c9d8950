package gateway

import (
	"net"
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

// healthFirst reserves connections beyond the limit for health checks. Each serves
// one request.
func (g *Gateway) healthFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := g.reserved(r)
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
			problem.Write(w, why.Problem(2*g.deps.retryHint()))
		}
	})
}

// reserved refuses a request over a connection that is reserved for health checks. It
// returns nil if the connection is not.
func (g *Gateway) reserved(r *http.Request) *admission.Refusal {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	if p := patient(conn); p == nil || !p.reserved {
		return nil
	}
	return &admission.Refusal{Reason: admission.RefusedConnections, Count: g.doors.count(), Limit: g.doors.limit}
}
