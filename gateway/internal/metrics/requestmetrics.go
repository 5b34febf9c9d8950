package metrics

import (
	"net/http"
	"strconv"
)

// makeRequests makes the metrics of requests over HTTP.
func (m *Metrics) makeRequests() {
	m.requests = counterVec("http_requests_total",
		"Requests over HTTP, by the template of their path, method and status. Each counts when its status is sent: a stream when it begins, a long poll when it ends. other: the path has no route, or the method is unusual.",
		"route", "method", "code")
	m.Registry.MustRegister(m.requests)
}

// Answered counts a request over HTTP when its status is sent. route is the template of its
// path; empty: it has none.
func (m *Metrics) Answered(route, method string, status int) {
	if route == "" {
		route = other
	}
	m.requests.WithLabelValues(route, knownMethod(method), strconv.Itoa(status)).Inc()
}

// other is the value of a label for everything that clients make up.
const other = "other"

// knownMethod keeps the number of series small, whatever clients send.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return method
	}
	return other
}
