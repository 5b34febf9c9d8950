package problem

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// NotFound answers a path without a route.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Write(w, New(http.StatusNotFound, "there is nothing at %s; see /openapi.json", r.URL.Path))
}

// MethodNotAllowed answers a method that the path has not among the routes with those
// that it has.
func MethodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
			if routes.Match(chi.NewRouteContext(), method, r.URL.EscapedPath()) {
				allowed = append(allowed, method)
			}
		}
		OnlyAllowed(allowed...)(w, r)
	}
}

// OnlyAllowed answers 405, with the methods that the path has.
func OnlyAllowed(methods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := New(http.StatusMethodNotAllowed, "%s is not a method of %s: want %s", r.Method, r.URL.Path, strings.Join(methods, " or "))
		p.Allow = strings.Join(methods, ", ")
		Write(w, p)
	}
}
