// Package problem is the gateway's error answer: problem+json over HTTP and a
// status over gRPC. It also has the checks common to all requests: of the method,
// the query, the named watches, and what narrows them to views.
package problem
