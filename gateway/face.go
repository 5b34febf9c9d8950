package gateway

import (
	"context"
	"net"
	"net/http"

	"github.com/watchtide/watchtide/internal/hosts"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// operatorKey is the context key of requests that came to the operators' face. The
// other face is public: it says what kind of trouble there is, but does not reveal
// addresses, files, clients or profiles.
type operatorKey struct{}

// forOperators marks requests.
func forOperators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), operatorKey{}, true)))
	})
}

// isOperator reports whether a request came to the operators' face. Calls over gRPC
// never do.
func isOperator(ctx context.Context) bool {
	return ctx.Value(operatorKey{}) != nil
}

// reasonFor returns as much of the reason of a status as the caller may know.
func reasonFor(ctx context.Context, s stream.Status) string {
	if isOperator(ctx) {
		return s.Full()
	}
	return s.Reason
}

// lastErrorFor returns as much of the last error of an upstream as the caller may
// know.
func lastErrorFor(ctx context.Context, u watch.Upstream) string {
	if isOperator(ctx) {
		return u.LastError
	}
	return u.LastReason
}

// faceOf returns the handler of the public listener. A listener that only this
// machine can reach shows everything, unless the configuration mentions a proxy in
// front of it: then its clients are those of the proxy.
func (g *Gateway) faceOf(address net.Addr) http.Handler {
	proxied := len(g.cfg.Hosts) > 0 || len(g.cfg.TrustedProxies) > 0
	if hosts.IsLoopback(address.String()) && !proxied {
		return g.handler(true, nil)
	}
	return g.Handler()
}

// OperationsHandler returns what operators see: all that Handler serves, with the
// reasons in full, and also /metrics, /v1/subscribers and /debug/pprof/. Anyone who
// can reach it may see addresses of clients and upstreams.
func (g *Gateway) OperationsHandler() http.Handler {
	return g.handler(true, g.cfg.Profiles)
}
