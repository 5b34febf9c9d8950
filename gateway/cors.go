package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/web"
)

const (
	corsMethods = "GET, HEAD, POST, PUT, DELETE"
	// corsHeaders are the headers that are read, those that libraries for tracing add to every
	// request of their page, and Incremental, which asks proxies not to buffer: without permission
	// for these, the page gets no answer at all.
	corsHeaders = "Accept, Authorization, Cache-Control, Content-Type, If-Match, If-None-Match, Incremental, Last-Event-ID, baggage, traceparent, tracestate"
	corsExposed = "Allow, ETag, Retry-After, " + instanceHeader
	// corsMaxAge is how long a browser may remember a preflight, in seconds.
	corsMaxAge = "600"
)

// cors lets pages of the configured origins read the answers, and answers their
// browsers' preflights (Fetch standard, section 3.3). Origins match exactly; for all
// others the browser withholds the answer from the page.
func (g *settings) cors(next http.Handler) http.Handler {
	if len(g.cfg.AllowedOrigins) == 0 {
		return g.logOrigin(next)
	}
	headers := strings.Join(slices.Concat([]string{corsHeaders}, g.cfg.AllowedHeaders), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		allowed := slices.Contains(g.cfg.AllowedOrigins, origin)
		if allowed {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Set("Access-Control-Expose-Headers", corsExposed)
		} else {
			g.refuseOrigin(r)
		}
		if !isPreflight(r) {
			next.ServeHTTP(w, r)
			return
		}
		if allowed {
			h.Set("Access-Control-Allow-Methods", corsMethods)
			h.Set("Access-Control-Allow-Headers", headers)
			h.Set("Access-Control-Max-Age", corsMaxAge)
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// logOrigin logs the origins of pages whose browsers withhold the answer.
func (g *settings) logOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.refuseOrigin(r)
		next.ServeHTTP(w, r)
	})
}

// refuseOrigin logs the origin of a request if it is not allowed. Browsers send one with some
// requests of our own page too, whose host a proxy may have changed. The client is for pages of every
// origin.
func (g *settings) refuseOrigin(r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || web.Public(r.URL.Path) || r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return
	}
	if u, err := url.Parse(origin); err == nil && u.Host == r.Host {
		return
	}
	g.refusals.Origin(origin, g.proxies.OfRequest(r).Addr())
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" &&
		strings.TrimSpace(r.Header.Get("Access-Control-Request-Method")) != ""
}
