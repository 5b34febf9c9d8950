// Package faults puts a source through all faults of its upstream, and checks the
// events of its subscribers.
//
// One run ([Run]) is one source behind a [realserver.Proxy], a watch that follows
// it, an upstream that is written to all the time, and ten subscribers: some read at
// once, some are cut off inside a flush and reconnect with any id that was ever
// sent, some are slow, some are new and stay for a moment. Then one fault after the
// other is injected. After each of them,
//
//   - every checker of streamtest holds on the history of every connection;
//   - every subscriber, and the upstream asked directly, hold the same;
//   - status said stale, where the upstream was gone, within the time in which
//     the source as configured has to notice ([Rig.Notice]), and in_sync after
//     it was back;
//   - nothing was deleted that was not deleted upstream, and nothing was sent
//     that is spurious (see below);
//
// and at the end no goroutine is left. The results of each fault are a [Row].
//
// # Spurious
//
// A subscriber knows its state at the id that it came with, and the events since. An
// event is spurious if it is
//
//   - a repetition: an upsert of the revision and value that the subscriber knows
//     the key to have, or a delete of a key that it knows not to be there. The
//     delete of what was created and deleted since is none: it is news, and may
//     be all that is known of it. In a snapshot, which begins from nothing, no
//     upsert is a repetition; nor is anything before end_of_snapshot after a
//     resume from an id in mid-snapshot or mid-catch-up, or, of an upstream
//     whose deletes have no revision of their own, a delete there: such an id
//     leaves open what came before it;
//   - a contradiction: an upsert of what the key never was upstream, or a delete
//     of a key that was not deleted upstream since the version that the
//     subscriber holds;
//   - a reset without a cause. Causes are: a subscriber that came without an id;
//     an upstream that lost its content; and an id from before a snapshot that
//     ended an outage, since what was created and deleted meanwhile is not in it.
package faults
