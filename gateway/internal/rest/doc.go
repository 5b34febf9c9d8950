// Package rest serves the requests over HTTP that are answered as a whole: the unary API
// and the long poll. It checks all that comes with a request, since what lies below
// expects valid calls.
package rest
