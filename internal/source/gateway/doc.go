// Package gateway follows watches of another gateway, over its streams of
// server-sent events. So gateways form trees: a few near the upstream, and as many
// as the readers need behind them.
//
// # Shared connections
//
// The watches of one [Upstream] share one request, /v1/events?watch=a&watch=b.
// When one starts or ends, the request is repeated with the known positions, so
// that only a new watch gets a snapshot; the others do not notice. There is more
// than one request where one cannot hold them all: an id may have 1,024 bytes,
// which is room for about 14 watches, a URL has room for a few long definitions, and
// one stream names a watch once, so that two parts of one watch have a request each. A
// watch that the upstream refused, or that ended by its own fault, retries on a request
// of its own, so that it does not disturb the others.
//
// # Positions
//
// A position names the epoch and the revision of the gateway at the root, so it is
// valid at every gateway of the tree. Nothing is translated: a watch that the upstream
// narrows has the epoch that the upstream gives to the definition, so that a position of
// one definition is never resumed under another.
// Flushes are commits: changes that the upstream shows together become visible
// together. Changes since the last position are dropped when a request is
// repeated: its answer may come from a replica that is behind. Changes that the
// upstream may itself have missed are reported in a bookmark, which is passed on
// with [stream.RaiseHorizon].
//
// # What ends a stream
//
//   - goodbye: in good order. Its retry_ms is the least time until the next
//     request, up to five minutes; so is Retry-After of a refusal. It is ignored
//     for max_age: that upstream is healthy, and waiting would make the watches
//     stale for nothing.
//   - Silence for more than two and a half of the heartbeats that hello announces,
//     or for longer than Config.StallAfter: [stream.ErrStalled].
//   - A violation of the protocol: [stream.ErrInvalid], which says what it was and
//     what would be right. It ends the watch that it concerns, or, if it concerns
//     none, the request.
//   - A request that is cut off is repeated immediately, subject to ingest's
//     back-off; one that fails before hello, not before the time that the field
//     retry gave.
//
// # Verification
//
// A resumed stream may begin with a digest in place of a reset, and each end_of_snapshot and
// bookmark has that of the state up to it. Both are compared with what the sink holds: the first by
// hashing it, the others by [stream.Holding], which knows. If they differ, requests beside the
// stream find out where, and what comes of the watch meanwhile waits; the other watches of
// the stream go on. If the state is gone by then, the stream is requested at a position that no
// gateway knows, for which it is sent the digest of one that is kept. After two failures a
// snapshot is asked for.
//
// Package client makes the connections.
package gateway
