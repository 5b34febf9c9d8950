// Package gateway speaks HTTP and gRPC for the watches of a stream.Registry.
package gateway
