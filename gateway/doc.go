// Package gateway serves the watches of a watch.Registry over HTTP and gRPC.
//
// It makes no decision about the data: package stream determines what is sent and in
// which order, and renders the bytes of an event once. This package decides who may
// open a stream, in which framing it is written, when it is flushed, when it ends, and
// how all of that is refused, measured and shut down.
//
// # Usage
//
//	g, err := gateway.New(gateway.Config{Registry: registry})
//	…
//	err = g.Serve(ctx, gateway.Listeners{HTTP: listener})
//
// A program that has its own http.Server mounts Handler and calls Drain before
// Shutdown. The source of Handler shows every route on one screen.
//
// # A stream
//
// handleEvents parses the request, refuses what cannot be served, and hands the stream,
// a session, to one of the pumps:
//
//	hello
//	repeat: write what is new; wait for a change, or for the client to read
//	goodbye, and a clean end of the body
//
// The shard pump (internal/shard) takes connections of HTTP/1.1 from net/http, and streams
// of HTTP/2 from the connections that internal/h2 serves. A
// few goroutines, one for each processor, carry all of their streams: those at the same
// position in the same watches form a group, and share the bytes of a flush. The
// goroutine pump (internal/session) runs one goroutine for each stream, on a connection
// that it takes from net/http where it can.
//
// No stream has a queue. A waiting stream holds no buffer of this package. A client
// that reads slowly gets fewer intermediate values and does not affect the others.
//
// # When a stream ends
//
//   - The client disconnects: its connection is closed or reset. One that closes only
//     its sending half still gets its answer.
//   - The client does not read: no byte could be written for Config.WriteTimeout.
//     The deadline starts again with every piece of at most 64 KiB, and under
//     Serve with every byte that moves. Such a stream ends without goodbye.
//   - The gateway ends it, with goodbye: its request is complete, it is too
//     old (Config.MaxAge), one of its watches was removed, or the gateway drains.
//
// # Goroutines
//
// net/http, internal/h2 and gRPC run a goroutine for each request that they keep. Serve adds one for
// each of its listeners, the shards while they carry streams, and a few that wait for
// clients to hang up. It returns when all of them have ended.
package gateway
