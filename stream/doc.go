// Package stream is the vocabulary of watches: resources, events, positions, the
// freshness of a state; and the ports through which changes come in, Source, Sink and
// Writer. The packages below it keep one versioned copy of an upstream collection,
// followed by any number of readers: internal/log is the copy and its readers,
// stream/watch keeps it in step with a source, internal/memory bounds what both hold. None
// of them does any networking: sources bring changes in, pumps take bytes out.
//
// # Vocabulary
//
// A [Source] is one upstream collection. A watch (watch.Watch) is what clients subscribe to: a
// name, a source, and the log (log.Log) that holds its copy. A [Resource] is one member:
// key, revision, value. A revision is a place in the upstream's own order; an epoch
// names one such order. A [Position] names a place in a watch that any replica
// understands. A snapshot is the complete state at one revision; a watch is primed
// once it has received its first. A log.Subscription is one reader's cursor, a
// log.Batch is one flush of it, and a log.Snapshot is the state at one revision.
//
// # Guarantees
//
// Each has a checker of the same name in package streamtest.
//
//   - Consistent: between reset and end_of_snapshot a subscriber receives exactly
//     the state that the upstream had at the revision of end_of_snapshot. If it is
//     too slow for the state that the snapshot began with, a status (catching_up)
//     says so, and what has changed follows: a key may then come twice, the second
//     time newer, or be deleted.
//   - Gapless: after end_of_snapshot no change is lost: for every key the newest
//     value is delivered.
//   - Ordered: a key never goes back to an older value, except after a reset. To a
//     subscriber that keeps up, events come in the upstream's order; in a snapshot
//     or a catch-up deletes come first, then upserts by rising revision.
//   - Atomic: what the upstream changed in one transaction becomes visible
//     together: no id is sent between, of whatever watch of the stream, and no flush
//     ends between where the subscriber keeps up; only a transaction of more than a
//     MiB takes several.
//   - Resumable: going on from any position ever handed out, to this or another
//     replica, gives the same final state as never having been away. A position is
//     handed out only where it covers all that was sent.
//   - Conflating: a slow subscriber gets the newest value of each key. It blocks
//     nobody and costs no memory in proportion to its lag.
//   - Resynchronising: after an outage of the upstream, subscribers see only what
//     really changed, deletes included, and never a half-loaded state.
//   - Fresh: a subscriber can tell in_sync from stale.
//   - Monotonic: a watch does not go back in time, except by an explicit reset.
//   - Confidential: no byte of what is hidden from a subscriber is sent to it: no
//     resource, field or key. If it is not known whether it holds a resource that
//     is hidden now, it gets a reset, and no delete.
//
// Ordered, Consistent and Gapless hold without exception for a reader that applies
// events when a position arrives, and drops events without one when its connection
// ends. A position covers the events up to it, and no more. A reader that applies
// each event at once may hold changes beyond its position when it is cut off inside a
// flush, and the replica where it resumes may not have them yet. Until that replica
// has passed what the reader had received, a key of these changes may go back to a
// value no older than the position. If that replica loses its upstream before then
// and recovers by a snapshot, a key that was created and deleted meanwhile may stay
// until the next reset.
//
// Less formally: there is one true order, the upstream's. A reader has a place in
// it, and only ever moves forward or is told to start again.
//
// Do not assume that every value of a key is seen: a reader that falls behind, or
// resumes, gets the newest one only. Do not assume that two watches are at the
// same moment.
//
// # Who runs what
//
//	goroutine                    started by       ends when             owns
//	ingest, one for each watch   Registry.Add     the watch is removed  the log's writing side, back-off, freshness
//	reader, one for each         ingest           Source.Watch returns  the upstream connection, the transaction
//	connection                                                          that is being read
//	pump, one for each           the caller       the stream ends       its Subscription and its Batch
//	subscriber
//
// Nothing else in these packages starts a goroutine, except for timers. A log is written by one
// goroutine, which publishes immutable versions through one atomic pointer;
// everything else reads those. To wait is to wait for a channel that is closed when
// there is a newer version. The one mutex of a log guards the list of readers that
// hold a version between two flushes. It is taken once for each walk of more than
// one flush, for each version that retires memory, and every five seconds while any
// reader in the middle of a version has a minimum rate.
package stream
