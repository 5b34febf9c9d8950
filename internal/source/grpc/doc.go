// Package grpc follows a watch of any server that implements WatchList of
// watchtide.v1.WatchService: a backend of its own, the embedded store, or another
// gateway. The other methods of the service are not called.
//
// # What the upstream must send
//
// reset, the snapshot's upserts, end_of_snapshot, then every change in its own
// order. Nothing else is required. Optional features are used if present:
//
//   - Positions "watch@epoch-R" name the revision order, so that all replicas
//     agree on it, make the watch resumable, and mark where a transaction ends:
//     changes become visible together at the next position without "/T". An
//     upstream that sends positions must send one with end_of_snapshot, or
//     before, and one at the end of each transaction. Without positions each
//     change is a transaction, the order is named after address, watch and
//     prefix, and each connection begins with a snapshot.
//   - status (priming, resyncing, stale, in_sync) is passed on. What comes
//     between catching_up and the next bookmark is one transaction.
//   - bookmark is progress.
//   - goodbye ends the stream; its retry_ms is the least time until the next
//     connection, up to 30 seconds. It is ignored for max_age: that upstream
//     is healthy, and waiting would make the watch stale for nothing.
//
// # What is rejected
//
// A message that violates the protocol ends the connection with
// [stream.ErrInvalid], which names the event and the expected form: an event before
// reset, a value that is not JSON, a revision 0, a position of another watch,
// another epoch without a reset, an empty message, fewer resources than
// end_of_snapshot counts. Unknown event types and states are ignored, as the
// protocol requires. Order is not checked here but by ingest, as for every source.
package grpc
