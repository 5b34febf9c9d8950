package session

import (
	"context"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream/watch"
)

// Progress is one subscription as gRPC and the long poll read it, with its counts.
// Owned by one goroutine.
type Progress struct {
	Term
	// Static after construction.
	Metrics   *metrics.Metrics
	tally     *introspection.Tally
	tracing   *tracing.Tracing
	request   tracing.Parent // nil: it is not traced
	watch     string
	transport string
	Began     time.Time
	Sub       *log.Subscription
	lease     limits.Lease // lease for large reads
	Published *introspection.PublishedProgress

	Batch      log.Batch
	Delivered  introspection.Delivered
	QuietSince time.Time // of the last write
	counts
}

// NewProgress lists the stream among the subscribers. ctx is that of its request. Its pass may be
// nil. It must be closed.
func NewProgress(ctx context.Context, d *Deps, transport string, with *authz.Pass, who introspection.Identity, w *watch.Watch, of introspection.ViewRef, sub *log.Subscription) Progress {
	now := time.Now()
	p := Progress{
		Term: d.newTerm(now, with), Metrics: d.Metrics, tally: d.Series.Tally(w), tracing: d.Tracing, request: d.Tracing.ParentOf(ctx), watch: w.Name(), transport: transport, Began: now, Sub: sub,
		lease: limits.NewLease(d.Snapshots), QuietSince: now,
		Published: introspection.NewPublishedProgress(who, transport, false, introspection.Followed{Watch: w.Name(), View: of}),
	}
	p.Show()
	d.Subscribers.Add(p.Published)
	return p
}

// Show publishes how far the subscription is.
func (p *Progress) Show() {
	p.Published.Show(p.Delivered, func(int) log.Progress { return p.Sub.Progress() })
}

// Next fills the batch with the next flush. It returns false if there is nothing now.
func (p *Progress) Next() bool {
	if !p.lease.Check(p.Sub) {
		p.lease.Release()
	}
	if !p.Sub.Next(&p.Batch) {
		return false
	}
	p.lease.Moved()
	return true
}

// Changed returns a channel that signals that there may be more, after Next returned
// false.
func (p *Progress) Changed() <-chan struct{} {
	if p.Sub.Held() {
		return p.lease.Granted
	}
	return p.Sub.Changed()
}

// Bookmark fills the batch with a bookmark, if there was progress without data.
func (p *Progress) Bookmark() bool { return p.Sub.Bookmark(&p.Batch) }

// Wrote counts the batch as written.
func (p *Progress) Wrote(bytes int) {
	p.QuietSince = time.Now()
	p.count(counting{metrics: p.Metrics, tally: p.tally, transport: p.transport, streams: 1, began: p.Began, delivered: &p.Delivered, tracing: p.tracing, request: p.request, watch: p.watch}, p.Sub, &p.Batch)
	p.Metrics.BytesOut(p.transport, bytes)
	p.Delivered.Bytes += uint64(bytes)
	p.Batch.Release()
	p.Show()
	committed, age := p.Batch.Committed()
	p.written(committed, age)
}

// written measures a commit that was written just now.
func (p *Progress) written(committed time.Time, age time.Duration) {
	id := ""
	if !committed.IsZero() && p.tracing.SlowCommit(p.QuietSince.Sub(committed)) {
		id = p.tracing.Commit(committed, p.QuietSince, tracing.Delivery{Transport: p.transport, Watches: []string{p.watch}})
	}
	p.Metrics.Written(p.QuietSince, committed, age, id)
	if !committed.IsZero() {
		p.tally.Written(p.QuietSince.Sub(committed))
	}
}

// Synced reports whether the first end_of_snapshot was written.
func (p *Progress) Synced() bool { return p.synced }

// Close releases the subscription.
func (p *Progress) Close() {
	p.lease.Release()
	p.Sub.Close()
}
