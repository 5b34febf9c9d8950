package gateway

import (
	"bufio"
	"net"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
)

// counted counts requests by the templates of routes.
func (g *Gateway) counted(routes chi.Routes) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := &countedResponse{ResponseWriter: w, request: r, routes: routes, metrics: g.metrics}
			next.ServeHTTP(out, r)
			out.count(http.StatusOK) // what net/http sends if the handler has written nothing
		})
	}
}

// countedResponse counts a request once its status is known. A stream that leaves net/http, or
// that lasts, is counted when it begins. One that ends with a panic before its status is not.
//
// Owned by the goroutine of the request.
type countedResponse struct {
	http.ResponseWriter
	request *http.Request
	routes  chi.Routes
	metrics *metrics.Metrics
	counted bool
}

// WriteHeader implements http.ResponseWriter.
func (w *countedResponse) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.count(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *countedResponse) Write(p []byte) (int, error) {
	w.count(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Hijack implements http.Hijacker. Only streams leave net/http, with the status 200.
func (w *countedResponse) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.count(http.StatusOK)
	}
	return conn, buffer, err
}

// Unwrap lets http.ResponseController find the wrapped writer.
func (w *countedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countedResponse) count(status int) {
	if !w.counted {
		w.counted = true
		w.metrics.Answered(w.route(), w.request.Method, status)
	}
}

// route returns the template of the route. A request that is refused before it is routed is
// counted for the route that it would have taken.
func (w *countedResponse) route() string {
	route := chi.RouteContext(w.request.Context()).RoutePattern()
	if route == "" {
		route = w.routes.Find(chi.NewRouteContext(), w.request.Method, w.request.URL.EscapedPath())
	}
	if strings.HasPrefix(route, "/assets/") {
		return "/assets/*" // their names have a hash
	}
	return route
}
