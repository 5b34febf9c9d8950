package gateway

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/snapshots"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
)

// progress is one subscription as it is read for gRPC and for the long poll, with the
// counts taken along the way. Owned by one goroutine.
type progress struct {
	// Static after construction.
	metrics   *metrics.Metrics
	transport string
	began     time.Time
	sub       *log.Subscription
	lease     snapshots.Lease // permission to read much
	published *subscribers.PublishedProgress

	batch      log.Batch
	delivered  subscribers.Delivered
	quietSince time.Time // of the last write
	synced     bool      // the first end_of_snapshot was counted
}

func newProgress(d *deps, transport string, who subscribers.Identity, watch string, sub *log.Subscription) progress {
	now := time.Now()
	p := progress{
		metrics: d.metrics, transport: transport, began: now, sub: sub,
		lease: snapshots.NewLease(d.snapshots), quietSince: now,
		published: subscribers.NewPublishedProgress(who, transport, false, watch),
	}
	p.show()
	d.subscribers.Add(p.published)
	return p
}

// show publishes how far the subscription is.
func (p *progress) show() {
	p.published.Show(p.delivered, func(int) log.Progress { return p.sub.Progress() })
}

// next fills the batch with the next flush. It returns false if there is nothing now.
func (p *progress) next() bool {
	if !p.lease.Check(p.sub) {
		p.lease.Release()
	}
	if !p.sub.Next(&p.batch) {
		return false
	}
	p.lease.Moved()
	return true
}

// changed returns a channel that signals that there may be more, after next returned
// false.
func (p *progress) changed() <-chan struct{} {
	if p.sub.Held() {
		return p.lease.Granted
	}
	return p.sub.Changed()
}

// bookmark fills the batch with a bookmark, if there was progress without data.
func (p *progress) bookmark() bool { return p.sub.Bookmark(&p.batch) }

// wrote counts the batch as written.
func (p *progress) wrote(bytes int) {
	p.quietSince = time.Now()
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		p.metrics.EventsOut(p.transport, t, p.batch.Count(t))
		p.delivered.Events += uint64(p.batch.Count(t))
	}
	p.metrics.BytesOut(p.transport, bytes)
	p.delivered.Bytes += uint64(bytes)
	p.metrics.Conflated(p.transport, p.sub.Skipped()-p.delivered.Skipped)
	p.delivered.Skipped = p.sub.Skipped()
	p.batch.Release()
	p.show()
	if at := p.batch.Committed(); !at.IsZero() {
		p.metrics.CommitToWrite(p.quietSince.Sub(at))
	}
	if p.sub.Synced() {
		p.countSynced()
	}
}

// countSynced counts how the stream began, once that is known.
func (p *progress) countSynced() {
	if p.synced {
		return
	}
	p.synced = true
	p.metrics.Resumed(p.transport, string(p.sub.Outcome()))
	p.metrics.TimeToEndOfSnapshot(p.quietSince.Sub(p.began))
	if p.sub.Outcome() != log.OutcomeExact {
		p.metrics.Snapshot(p.transport)
	}
}

// close releases the subscription.
func (p *progress) close() {
	p.lease.Release()
	p.sub.Close()
}
