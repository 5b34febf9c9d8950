// Package rest serves the requests over HTTP that are answered as a whole: the unary
// API and the long poll. It checks all parts of a request, since the layers below
// expect valid calls.
package rest
