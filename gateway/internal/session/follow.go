package session

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Follow is one watch of a stream: a subscription, and what its pump remembers about
// it. Owned by the pump.
type Follow struct {
	// Static until the stream switches to another part of the watch.
	Watch *watch.Watch
	Sub   *log.Subscription
	// resumedFrom is the position that the client sent. It appears in the ids of the other watches'
	// events until the subscription has a position of its own.
	resumedFrom *stream.Position
	invalid     bool // the client sent one that could not be parsed

	// waits means that the watch let another one go first in its last turn.
	waits bool

	// news means that a change of the watch is written but not yet flushed.
	news  bool
	tally *introspection.Tally

	granted <-chan struct{} // ends a wait for the turn; nil: a shard is called

	// quietSince is when the watch last sent anything.
	quietSince time.Time
	// digests means that the stream asks for digests, and saidAt is when a bookmark was last sent.
	digests bool
	saidAt  time.Time

	counts
}

// Follow subscribes to a watch. The subscription must be closed.
func (d *Deps) Follow(w *watch.Watch, choice Choice, req *Request) Follow {
	digests, now := req.Digest && !choice.counted, time.Now()
	return Follow{
		Watch: w,
		Sub: w.Subscribe(log.SubscribeOptions{
			Resume:     choice.resume,
			Invalid:    choice.invalid,
			Digest:     digests,
			Verify:     req.Verify && !choice.counted,
			DigestsOff: d.DigestsOff,
			Deletes:    req.Deletes,
			AheadWait:  d.AheadWait,
			MinRate:    d.MinRate,
			Interval:   req.Interval,
			First:      choice.first,
		}),
		resumedFrom: choice.resume,
		invalid:     choice.invalid,
		tally:       d.Series.Tally(w),
		quietSince:  now,
		digests:     digests,
		saidAt:      now,
	}
}

// Changed returns a channel that signals that the subscription may have more, after a
// Next that had nothing. It is nil if the stream needs nothing more of the watch.
// News does not wake a subscription that waits for its turn, or for another watch.
func (f *Follow) Changed(until bool) <-chan struct{} {
	if f.Sub.Paused() {
		return f.granted
	}
	if f.waits || until && f.Sub.Synced() {
		return nil
	}
	return f.Sub.Changed()
}

// AppendPosition appends the id after everything that was written; nothing if that was nothing, and
// the client came with no position.
func (s *Session) AppendPosition(dst []byte) []byte { return appendPositions(dst, s.Follows) }

// appendPositions appends the id of a stream: the position of each of its watches.
func appendPositions(dst []byte, follows []Follow) []byte {
	for i := range follows {
		position, ok := follows[i].Sub.Position()
		if !ok && follows[i].resumedFrom != nil {
			position, ok = *follows[i].resumedFrom, true
		}
		if !ok {
			continue // nothing of it was delivered: it starts over
		}
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = position.Append(dst)
	}
	return dst
}

// countBatch counts the events of a batch that was written.
func (s *Session) countBatch(f *Follow) {
	in := counting{metrics: s.Deps.Metrics, tally: f.tally, transport: s.Transport(), streams: s.Streams, delivered: &s.Delivered, tracing: s.Deps.Tracing, watch: f.Watch.Name()}
	if s.Own != nil {
		in.began, in.request = s.Began, s.Request
	}
	f.count(in, f.Sub, &s.Batch)
	at, age := s.Batch.Committed()
	f.news = f.news || !at.IsZero()
	s.Committed = s.Committed.Earlier(introspection.Moment{At: introspection.Nanos(at), Age: age})
}

// CountBytes counts the bytes written since the last call. bytes is the total to each
// of the streams that c represents.
func (s *Session) CountBytes(bytes int) {
	n := bytes - s.Counted
	s.Counted = bytes
	s.Delivered.Bytes += uint64(n)
	s.Deps.Metrics.BytesOut(s.Transport(), n*s.Streams)
}
