// Package etcdsource follows the keys of an etcd cluster that begin with a
// prefix. The revision of a resource is its mod_revision, its value the bytes.
//
// # One member at a time
//
// A Watch call is one connection to one member, and ends with it; the next call
// takes the next endpoint. etcd's own watcher would reconnect by itself, behind
// our back: to a cluster that was wiped or restored meanwhile too, where a watch
// from a revision that is not reached yet is accepted and says nothing. So the
// stream of the watch is read here, once, and every connection begins with the
// question whether this still is the history that we know.
//
// # A snapshot
//
// The watch is opened first and runs freely; the keys are listed beside it, page
// by page, each page as of the revision that is current when it is read; a
// [stream.Merge] makes one state of both. It is complete, and is a state that the
// cluster really had, once the watch has told everything up to the revision of
// the newest page. No revision has to stay readable, so that neither the size of
// the collection nor the eagerness of compaction matters.
//
// How far the watch is, the member says on request. Servers before 3.4.31 and
// 3.5.13 may answer before they have sent all that came before the answer, so
// theirs are signs of life and no more. There a last read, of what changed since
// the list began, stands in: the state is complete if it has as many keys as the
// cluster had at that read.
//
// # The same history
//
// The epoch is made of the cluster's id and the prefix. Both may be the same for
// a store that was wiped, or restored from a backup. It is recognised by
//
//   - a revision of the cluster that is lower than one that was seen,
//   - the newest changes that were seen, and the number of keys, which are asked
//     for again, as of the revision up to which all is known,
//   - a snapshot in which a key contradicts what was served.
//
// The epoch then gets a suffix that nobody had before, and subscribers a reset.
package etcdsource
