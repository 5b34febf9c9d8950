// Package consulsource follows resources of Consul's resource service (Consul 1.18
// and later), of any type that the server has.
//
// # What Consul's watch is
//
// WatchList sends what there is, a marker, and then every change in order. But
// what it sends first may be up to ten seconds old, since servers keep it for the
// next watch, and is then followed by all that happened since: objects go back in
// time, and deleted ones appear for a moment. After a restart of a server it is
// empty, or a part. No event says as of when it is, deletions come under the last
// version that the resource had, and no watch can go on where another one ended.
//
// # What is done about it
//
// A strongly consistent List is read beside the watch, by the leader, and begins
// after the watch. It is the snapshot; a [stream.Merge] says what of the watch is
// newer:
//
//   - a version that is not newer than what is known of its key, or that is of an
//     unknown key and not newer than all that was listed, is of the past;
//   - an unknown key with a version beyond the list was created after it, or
//     deleted before it. A strongly consistent Read tells, by the resource's unique
//     id. That is needed only until the watch is seen to have passed the list;
//   - a deletion counts if it is of the version and the unique id that are known.
//
// The watch's marker is ignored, so that servers without one are followed too.
// While servers have no leader they cannot answer consistently. That is waited
// for, and said.
//
// Every so often the list is read again beside the live watch, since Consul does
// not tell what a narrowed policy hides; and a small consistent Read is made every
// few seconds, since a Consul that has nothing to tell is as silent as one that is
// gone.
//
// # The order of revisions
//
// Revisions are versions, which are the places in the log of the cluster. What was
// committed is remembered beyond the end of a connection: a snapshot in which
// anything contradicts it (an older version, another resource of the same version,
// something unknown that is not new) is the begin of another order and gets
// another epoch. See the comment of epochs for how it is named.
package consulsource
