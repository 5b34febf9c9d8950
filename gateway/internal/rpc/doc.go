// Package rpc serves the gateway over gRPC: the unary calls, and WatchList, whose streams
// have the same rules as those over HTTP.
package rpc
