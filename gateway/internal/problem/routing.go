package problem

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

// NotFound answers a path without a route.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Write(w, New(http.StatusNotFound, "there is nothing at %s; see /openapi.json", r.URL.EscapedPath()))
}

// MethodNotAllowed answers a request whose method has no route for the path with the
// methods that have one.
func MethodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
			if routes.Match(chi.NewRouteContext(), method, r.URL.EscapedPath()) {
				allowed = append(allowed, method)
			}
		}
		p := New(http.StatusMethodNotAllowed, "%s is not a method of %s: want %s", r.Method, r.URL.Path, strings.Join(allowed, " or "))
		p.Allow = strings.Join(allowed, ", ")
		Write(w, p)
	}
}

// WriteForPath answers a request whose path names a watch with a problem that also names
// it.
func WriteForPath(w http.ResponseWriter, r *http.Request, p *Problem) {
	if p.Watch == "" {
		p.OnWatch(PathParameter(r, "watch"))
	}
	Write(w, p)
}

// PathParameter returns a part of the path, decoded. chi matches the path as it was
// sent if that differs from its usual encoding.
func PathParameter(r *http.Request, name string) string {
	raw := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return raw
	}
	decoded, err := url.PathUnescape(raw)
	if err != nil {
		return raw // never: net/http has already decoded the whole path
	}
	return decoded
}

// Misdirected returns the answer to a request for a name that does not belong to
// this gateway.
func Misdirected(authority string) *Problem {
	if len(authority) > 253 {
		authority = authority[:253]
	}
	return New(http.StatusMisdirectedRequest,
		"this gateway is not served under the host %q: ask for it by its IP address or as localhost, or add the name to http.hosts in its configuration", authority)
}
