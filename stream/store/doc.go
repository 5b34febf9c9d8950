// Package store is the built-in source: a writable collection of resources, in memory alone or kept in
// a file as well.
//
// One [Store] holds any number of watches by name. They share one sequence: each
// write gets the next number as its revision, in whichever watch. Each watch has an
// epoch that is drawn at random when the watch begins, so a position of another
// history is never mistaken for one of this history.
//
// # The file
//
// [New] makes a store that is lost when the process ends. [Open] makes one whose file has everything:
// resources, the deletes that clients need to resume, epochs and the sequence, which never goes back.
// The file is read once, at the start, and from then on only written. It has resources by their keys, so
// that a write changes as few pages as one to bbolt alone; a file of format 1, which had them by revision,
// is converted when it is opened. A write is visible, and answered,
// when it is on the disk. Writes that arrive while the disk is waited for share the next wait. After a
// failed write to the disk, all writes are refused until the file is opened again, and reads go on. A
// file that is damaged is not opened. If the file is a copy of an earlier state, its watches begin new
// epochs; see package disk.
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
// A write is made when Put or Delete returns: it is in the store's file and its own log, and the
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
