// Package ssesource follows watches of another gateway, over its streams of
// server-sent events. So gateways form trees: a few near the upstream, and behind
// them as many as there are readers.
//
// # Shared connections
//
// The watches of one [Upstream] share one request, /v1/events?watch=a&watch=b.
// When one joins or leaves, the request is made anew with the positions that are
// known, so that only a watch that is new gets a snapshot; the others do not
// notice. There is more than one request where one cannot hold them all: an id
// may have 1,024 bytes, which is room for about 14 watches, and one stream names a
// watch once. A watch that the upstream refused, or that ended by its own fault,
// tries again on a request of its own, so that it does not disturb the others.
//
// # Positions
//
// A position names the epoch and the revision of the gateway at the root, and so
// it is good at every gateway of the tree. Nothing is translated: a watch that is
// narrowed by a prefix has the epoch that its upstream gives it, which says by
// which prefix. Flushes are commits: what the upstream shows together becomes
// visible together. What came since the last position is dropped when a request is
// made anew: its answer may come from a replica that is behind. What the upstream
// may have missed itself it says in a bookmark, which is passed on with
// [stream.RaiseHorizon].
//
// # What ends a stream
//
//   - goodbye: in good order. Its retry_ms is the least time until the next
//     request, up to five minutes; so is Retry-After of a refusal. It is not kept
//     for max_age: that upstream is well, and waiting would make the watches stale
//     for nothing.
//   - Silence for more than two and a half of the heartbeats that hello announces,
//     or for longer than Config.StallAfter: [stream.ErrStalled].
//   - What breaks the protocol: [stream.ErrInvalid], which says what it was and
//     what would be right. It ends the watch that it concerns; what concerns none
//     ends the request.
//   - A request that is cut off is made again at once, by ingest's back-off; one
//     that fails before hello, not before the time that the field retry named.
//
// The connections are those of package sseclient.
package ssesource
