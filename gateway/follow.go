package gateway

import (
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// follow is one watch of a stream: a subscription, and what its pump remembers about
// it. Owned by the pump.
type follow struct {
	// Static after construction.
	watch *watch.Watch
	sub   *log.Subscription
	// came is the position that the client came with. It appears in the ids of the
	// other watches' events until the subscription has a position of its own.
	came *stream.Position

	granted <-chan struct{} // ends a wait for the turn; nil: a shard is told

	// quietSince is when the watch last sent anything.
	quietSince time.Time

	// For the metrics.
	told       bool // the outcome of the resume was counted
	inSnapshot bool
	synced     bool   // the first end_of_snapshot was counted
	skipped    uint64 // changes that were counted as conflated
}

func (d *deps) follow(w *watch.Watch, choice watchChoice) follow {
	return follow{
		watch: w,
		sub: w.Subscribe(log.SubscribeOptions{
			Resume:    choice.resume,
			Invalid:   choice.invalid,
			Prefix:    choice.prefix,
			AheadWait: d.aheadWait,
			MinRate:   d.minRate,
		}),
		came:       choice.resume,
		quietSince: time.Now(),
	}
}

// changed returns a channel that signals that the subscription may have more, after a
// Next that had nothing. It is nil if nothing more is wanted. A subscription that
// waits for its turn is not woken by news.
func (f *follow) changed(until bool) <-chan struct{} {
	if f.sub.Held() {
		return f.granted
	}
	if until && f.sub.Synced() {
		return nil
	}
	return f.sub.Changed()
}

// appendPositions appends the id of a stream: the position of each of its watches.
func appendPositions(dst []byte, follows []follow) []byte {
	for i := range follows {
		position, ok := follows[i].sub.Position()
		if !ok && follows[i].came != nil {
			position, ok = *follows[i].came, true
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
func (c *conversation) countBatch(f *follow) {
	b, m, transport := &c.batch, c.deps.metrics, c.transport()
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		m.EventsOut(transport, t, b.Count(t)*c.stands)
		c.delivered.Events += uint64(b.Count(t))
	}
	f.inSnapshot = f.inSnapshot || b.Count(stream.Reset) > 0
	if b.Count(stream.EndOfSnapshot) > 0 && f.inSnapshot {
		f.inSnapshot = false
		m.Snapshot(transport)
	}
	if !f.synced && f.sub.Synced() {
		f.synced = true
		m.TimeToEndOfSnapshot(time.Since(c.began))
	}
	if outcome := f.sub.Outcome(); !f.told && outcome != log.OutcomePending {
		f.told = true
		m.Resumed(transport, string(outcome))
	}
	skipped := f.sub.Skipped() - f.skipped
	m.Conflated(transport, skipped)
	c.delivered.Skipped += skipped
	f.skipped = f.sub.Skipped()
	if at := b.Committed(); c.committed.IsZero() || !at.IsZero() && at.Before(c.committed) {
		c.committed = at
	}
}

// countBytes counts the bytes written since the last call. bytes is the total to each
// of the streams for which c speaks.
func (c *conversation) countBytes(bytes int) {
	n := bytes - c.counted
	c.counted = bytes
	c.delivered.Bytes += uint64(n)
	c.deps.metrics.BytesOut(c.transport(), n*c.stands)
}
