// Package store is the built-in source: a writable collection of resources in
// memory. It is lost when the process ends.
//
// One [Store] holds any number of watches by name. They share one sequence: each
// write gets the next number as its revision, in whichever watch. Each watch has an
// epoch that is drawn at random when the watch begins, so a position of an earlier
// process is never mistaken for one of this process.
//
// # Reading
//
// The store is a server of watchtide.v1.WatchService. [Store.Source] calls its
// WatchList within the process: by the same protocol as any other upstream, but
// without a connection, encoding or copies of values. The same server can be
// registered with a [google.golang.org/grpc.Server].
//
// # Writing
//
// A write is made when Put or Delete returns: it is in the store's own log, and the
// next reader of the store finds it. Readers of a watch that follows the store see
// it a little later; the watch holds the write once it is at the revision that Put
// returned, or beyond.
//
// # Values are immutable
//
// A written value is copied, once, into the store's log. The values that readers get
// alias that log: they may be kept forever and must not be modified. Each reader has
// its own messages around them, and a value has no spare capacity, so that appending
// to it copies it.
//
// # Who runs what
//
// The store starts no goroutine. Each WatchList call runs in its caller's; for a
// Source that is one goroutine of the in-process channel, which has ended when Watch
// returns.
package store
