// Package watchtidev1 is the Go form of watchtide/v1/watch.proto: messages, the
// gRPC service, the JSON mapping of its unary methods, and the OpenAPI document. `make generate`
// makes all but this file and embed.go.
package watchtidev1
