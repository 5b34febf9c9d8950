// Package consul follows resources of Consul's resource service (Consul 1.18 and
// later), of any type that the server has.
//
// # What Consul's watch provides
//
// WatchList sends the current resources, a marker, and then every change in order.
// But the initial state may be up to ten seconds old, since servers keep it for the
// next watch, and it is then followed by all changes since: objects go back in time,
// and deleted ones reappear for a moment. After a restart of a server it is empty or
// partial. No event has a time, deletions have the last version of the resource, and
// no watch can resume where another one ended.
//
// # How this package handles it
//
// A strongly consistent List is read from the leader concurrently with the watch, and
// starts after the watch. It is the snapshot; a [adapter.Merge] decides which events of
// the watch are newer:
//
//   - a version that is not newer than what is known of its key, or that is of an
//     unknown key and not newer than everything listed, is outdated;
//   - an unknown key with a version beyond the list was created after it, or
//     deleted before it. A strongly consistent Read decides, by the resource's unique
//     id. That is needed only until the watch is seen to have passed the list;
//   - a deletion counts if it has the known version and unique id.
//
// The watch's marker is ignored, so that servers without one are followed too. While
// servers have no leader they cannot answer consistently. The source waits for one,
// and reports the wait.
//
// Every so often the list is read again beside the live watch, since Consul does not
// report resources that a narrowed policy hides. A small consistent Read is made
// every few seconds, since an idle Consul is as silent as a dead one.
//
// # The order of revisions
//
// Revisions are versions, which are positions in the log of the cluster. The
// committed state is remembered beyond the end of a connection: a snapshot in which
// anything contradicts it (an older version, another resource of the same version,
// something unknown that is not new) is the start of another order and gets another
// epoch. See the comment of epochs for how it is named.
package consul
