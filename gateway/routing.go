package gateway

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// notFound answers a path without a route.
func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, newProblem(http.StatusNotFound, "there is nothing at %s; see /openapi.json", r.URL.Path))
}

// methodNotAllowed answers a method that the path has not among the routes with those
// that it has.
func methodNotAllowed(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
			if routes.Match(chi.NewRouteContext(), method, r.URL.EscapedPath()) {
				allowed = append(allowed, method)
			}
		}
		onlyAllowed(allowed...)(w, r)
	}
}

// onlyAllowed answers 405, with the methods that the path has.
func onlyAllowed(methods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := newProblem(http.StatusMethodNotAllowed, "%s is not a method of %s: want %s", r.Method, r.URL.Path, strings.Join(methods, " or "))
		p.allow = strings.Join(methods, ", ")
		writeProblem(w, p)
	}
}
