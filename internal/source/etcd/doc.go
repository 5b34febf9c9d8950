// Package etcd follows the keys of an etcd cluster that begin with a prefix. The
// revision of a resource is its mod_revision, its value the bytes.
//
// # One member at a time
//
// A Watch call is one connection to one member, and ends with it; the next call
// takes the next endpoint. etcd's own watcher would silently reconnect, even to a
// cluster that was wiped or restored meanwhile, where a watch from a revision that
// is not reached yet is accepted and stays silent. So the stream of the watch is
// read here, once, and every connection starts by checking whether this still is
// the known history.
//
// # A snapshot
//
// The watch is opened first and runs freely. The keys are listed concurrently, page
// by page, each page as of the revision that is current when it is read; a
// [adapter.Merge] makes one state of both. It is complete, and is a state that the
// cluster really had, once the watch has reported everything up to the revision of
// the newest page. No revision has to stay readable, so neither the size of the
// collection nor the frequency of compaction matters.
//
// The member reports on request how far the watch is. Servers before 3.4.31 and
// 3.5.13 may answer before they have sent everything that precedes the answer, so
// their answers are only signs of life. For them a last read, of what changed since
// the list began, is used instead: the state is complete if it has as many keys as
// the cluster had at that read.
//
// # What was deleted before
//
// Beside the first state, a second watch reads which keys were deleted before the
// first one began, see [history], so that the watch can resume older positions. It
// is a supplement: whatever goes wrong with it, the first state is served without.
//
// # The same history
//
// The epoch is derived from the cluster's id and the prefix. Both may be the same
// for a store that was wiped, or restored from a backup. Such a store is recognised
// by
//
//   - a revision of the cluster that is lower than one that was seen,
//   - the newest changes that were seen, and the number of keys, which are queried
//     again, as of the revision up to which everything is known,
//   - a snapshot in which a key contradicts what was served.
//
// The epoch then gets a suffix that was never used before, and subscribers a reset.
package etcd
