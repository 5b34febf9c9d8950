// Package gateway speaks HTTP and gRPC for the watches of a stream.Registry.
//
// It decides nothing about the data: what is sent, and in which order, is
// package stream's; the bytes of an event are made there, once. This package
// decides who may open a stream, in which framing it is written, when it is
// flushed, when it ends, and how all of that is refused, measured and shut down.
//
// # Usage
//
//	g, err := gateway.New(gateway.Config{Registry: registry})
//	…
//	err = g.Serve(ctx, gateway.Listeners{HTTP: listener})
//
// A program that has an http.Server of its own mounts Handler and calls Drain
// before Shutdown. Handler shows every route on one screen.
//
// # A stream
//
// handleEvents reads the request (request.go, format.go), refuses what cannot be
// served, and then runs a pump in the goroutine of net/http:
//
//	hello, flushed
//	repeat: write everything there is; flush; wait
//	goodbye, and a clean end of the body
//
// No stream has a second goroutine, a queue or a lock of its own; one that waits
// holds no buffer of this package. A slow client makes its own pump wait in a
// write, and its subscription skip values meanwhile; nobody else notices.
//
// # When a stream ends
//
//   - The client leaves: net/http ends the context of the request. A client that
//     closes only its sending half is taken to have left.
//   - The client does not read: no byte could be written for Config.WriteTimeout.
//     The deadline begins anew with every piece of at most 64 KiB, and under
//     Serve with every byte that moves. Such a stream ends without goodbye.
//   - The gateway sends it away, with goodbye: its request is complete, it is too
//     old (Config.MaxAge), one of its watches was removed, or the gateway drains.
//
// # Who runs what
//
// net/http and gRPC run a goroutine for each request. Serve adds one for each of
// its listeners and returns when they have ended.
package gateway
