// Package store is the source that is always there: a writable collection of
// resources in memory. It is lost when the process ends.
//
// One [Store] holds any number of watches by name. All have one sequence: each
// write gets the next number as its revision, whatever watch it is in. Each
// watch has an epoch that is drawn when the watch begins, so that a position of
// an earlier process is never mistaken for one of this.
//
// # Reading
//
// The store is a server of watchtide.v1.WatchService. [Store.Source] calls its
// WatchList within the process: by the same protocol as any other upstream, but
// with no connection, no encoding and no copy of a value. The same server can
// be registered with a [google.golang.org/grpc.Server].
//
// # Writing
//
// A write is made when Put or Delete returns: it is in the store's own log, and
// the next reader of the store finds it. Readers of a watch that follows the
// store see it a little later; the revision that Put returned tells them when:
// the watch holds the write once it is at that revision or beyond.
//
// # Values are immutable
//
// What a writer hands over is copied, once, into the store's log. What readers
// get aliases that log: they may keep it for ever and must not change it. The
// messages around it are each reader's own, and a value has no spare capacity,
// so that appending to it copies it.
//
// # Who runs what
//
// The store starts no goroutine. Each WatchList call runs in its caller's; for
// a Source that is one goroutine of the in-process channel, which has ended when
// Watch returns.
package store
