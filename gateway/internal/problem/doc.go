// Package problem is the gateway's error answer: problem+json over HTTP and a
// status over gRPC. It also has the checks common to all requests: of the method,
// the query and the named watches.
package problem
