package session

import (
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// counts holds the counts of one subscription.
type counts struct {
	inSnapshot bool
	synced     bool   // the first end_of_snapshot was counted
	resumed    bool   // the outcome of the resume was counted
	skipped    uint64 // changes that were counted as conflated
}

// counting counts one stream, or a number of streams that are sent the same bytes.
type counting struct {
	metrics   *metrics.Metrics
	tally     *introspection.Tally
	transport string
	streams   int
	began     time.Time                // not of a group, which has had its snapshot
	delivered *introspection.Delivered // to one of them
	watch     string

	tracing *tracing.Tracing // nil: nothing is traced
	request tracing.Parent   // of the stream; nil: it is not traced
}

// count counts the events of a batch that was written.
func (n *counts) count(in counting, sub *log.Subscription, b *log.Batch) {
	m, events := in.metrics, uint64(0)
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		m.EventsOut(in.transport, t, b.Count(t)*in.streams)
		events += uint64(b.Count(t))
	}
	in.delivered.Events += events
	in.tally.Sent(events*uint64(in.streams), uint64(b.Bytes()*in.streams))
	n.inSnapshot = n.inSnapshot || b.Count(stream.Reset) > 0
	if b.Count(stream.EndOfSnapshot) > 0 && n.inSnapshot {
		n.inSnapshot = false
		m.Snapshot(in.transport)
	}
	if !n.synced && sub.Synced() {
		n.synced = true
		in.synced(sub)
	}
	if outcome := sub.Outcome(); !n.resumed && outcome != log.OutcomePending {
		n.resumed = true
		m.Resumed(in.transport, string(outcome))
	}
	skipped := sub.Skipped() - n.skipped
	m.Conflated(in.transport, skipped)
	in.delivered.Skipped += skipped
	n.skipped = sub.Skipped()
}

// synced measures how long the stream took to have all of a watch.
func (in counting) synced(sub *log.Subscription) {
	now := time.Now()
	id := in.tracing.SlowSnapshot(in.request, in.began, now, tracing.Snapshot{
		Transport: in.transport, Watch: in.watch, Outcome: string(sub.Outcome()), Events: in.delivered.Events, Bytes: in.delivered.Bytes,
	})
	in.metrics.TimeToEndOfSnapshot(now.Sub(in.began), id)
}
