package tracing

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Tracing makes spans.
//
// All methods may be called from any goroutine. A nil *Tracing makes no spans, and costs a
// comparison.
type Tracing struct {
	// Static after construction.
	tracer       trace.Tracer
	slowSnapshot time.Duration
	slowCommit   time.Duration

	last atomic.Pointer[slowCommit] // the last slow commit that has a span
}

// slowCommit is a commit that was slow to reach a subscriber.
//
// Static after construction.
type slowCommit struct {
	watch string
	at    int64 // in nanoseconds since 1970
	trace string
}

// New returns a Tracing. A snapshot is slow from slowSnapshot on, a commit from slowCommit on.
func New(tracer trace.Tracer, slowSnapshot, slowCommit time.Duration) *Tracing {
	return &Tracing{tracer: tracer, slowSnapshot: slowSnapshot, slowCommit: slowCommit}
}

// Parent is the request that a stream began with; nil: it is not traced.
type Parent = *trace.SpanContext

// ParentOf returns the parent of the spans of a stream.
func (t *Tracing) ParentOf(ctx context.Context) Parent {
	if t == nil {
		return nil
	}
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		return &c
	}
	return nil
}

// Delivery says what was sent to a subscriber.
type Delivery struct {
	Transport string
	Watches   []string
}

// SlowCommit reports whether a commit took so long to reach a subscriber that it is slow.
func (t *Tracing) SlowCommit(took time.Duration) bool { return t != nil && took >= t.slowCommit }

// Commit makes the span of a slow commit, from the commit to now, and returns its trace; empty:
// it is not sampled. A commit has one span, however many subscribers it reaches: that of the
// first one that it was slow to reach.
func (t *Tracing) Commit(at, now time.Time, d Delivery) string {
	first := ""
	if len(d.Watches) > 0 {
		first = d.Watches[0]
	}
	if l := t.last.Load(); l != nil && l.watch == first && l.at == at.UnixNano() {
		return l.trace
	}
	_, span := t.tracer.Start(context.Background(), "slow commit", trace.WithNewRoot(), trace.WithTimestamp(at), trace.WithAttributes(
		attribute.StringSlice("watchtide.watches", d.Watches), attribute.String("watchtide.transport", d.Transport)))
	span.End(trace.WithTimestamp(now))
	id := sampledTrace(span)
	t.last.Store(&slowCommit{watch: first, at: at.UnixNano(), trace: id})
	return id
}

// Snapshot says how a stream got the state of a watch.
type Snapshot struct {
	Transport string
	Watch     string
	Outcome   string // of the resume
	Events    uint64 // of the stream so far
	Bytes     uint64
}

// SlowSnapshot makes the span of a snapshot or a catch-up, from the start of its stream to now,
// if that was slow. It returns the trace of the snapshot; empty: it is not sampled.
func (t *Tracing) SlowSnapshot(parent Parent, began, now time.Time, s Snapshot) string {
	if t == nil {
		return ""
	}
	if now.Sub(began) < t.slowSnapshot {
		return traceOf(parent)
	}
	ctx := context.Background()
	if parent != nil {
		ctx = trace.ContextWithSpanContext(ctx, *parent)
	}
	_, span := t.tracer.Start(ctx, "slow snapshot", trace.WithTimestamp(began), trace.WithAttributes(
		attribute.String("watchtide.watch", s.Watch), attribute.String("watchtide.transport", s.Transport),
		attribute.String("watchtide.resume", s.Outcome),
		attribute.Int64("watchtide.events", int64(s.Events)), attribute.Int64("watchtide.bytes", int64(s.Bytes))))
	span.End(trace.WithTimestamp(now))
	return sampledTrace(span)
}

// sampledTrace returns the trace of a span; empty: it is not sampled.
func sampledTrace(span trace.Span) string {
	if c := span.SpanContext(); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

// traceOf returns the trace of the request of a stream; empty: it is not traced.
func traceOf(p Parent) string {
	if p == nil {
		return ""
	}
	return p.TraceID().String()
}
