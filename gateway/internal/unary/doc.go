// Package unary is watchtide.v1.WatchService without its streams: watches, pages of
// resources, one resource, and writes. It is served by package rest over HTTP and by
// package rpc over gRPC.
package unary
