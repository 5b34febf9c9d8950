package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"go.opentelemetry.io/otel/trace"
)

// Tracing says what is traced with OpenTelemetry: requests and calls, from their start to their
// answer or, if that is a stream, to its beginning; snapshots and commits that were slow to
// reach a subscriber.
type Tracing struct {
	// Tracer makes the spans. Its provider decides which are sampled: clients choose the parents
	// of requests. Spans of requests with a parent that a web page has made begin with
	// PageAttribute. Required.
	Tracer trace.Tracer
	// SlowSnapshot is how long a subscriber may wait for the state of a watch until that is
	// traced. Default: 5 s.
	SlowSnapshot time.Duration
	// SlowCommit is how long a change may take, from its commit to a subscriber that keeps up,
	// until it is traced. Default: 1 s.
	SlowCommit time.Duration
	// Spans returns how many spans there were so far, for the metrics; nil: they are not counted.
	Spans func() SpanCounts
}

// PageAttribute is the attribute of the spans of requests that a web page has made, with a parent. A
// sampler should not do as that parent says: libraries for tracing may sample everything, in
// every browser.
const PageAttribute = tracing.Page

// SpanCounts says what became of spans.
type SpanCounts struct {
	Exported uint64 // the collector has them
	Failed   uint64 // the collector could not be reached, or did not take them
	Dropped  uint64 // too many were waiting for the collector
}

// check returns an error that names the first invalid field.
func (t *Tracing) check() error {
	switch {
	case t == nil:
		return nil
	case t.Tracer == nil:
		return fmt.Errorf("gateway.Config: Tracing.Tracer is missing")
	case t.SlowSnapshot < 0, t.SlowCommit < 0:
		return fmt.Errorf("gateway.Config: Tracing has the limits %s and %s: want positive durations, or 0 for the defaults", t.SlowSnapshot, t.SlowCommit)
	}
	return nil
}

// tracing returns what makes the spans; nil: nothing does.
func (c Config) tracing() *tracing.Tracing {
	t := c.Tracing
	if t == nil {
		return nil
	}
	return tracing.New(t.Tracer, cmp.Or(t.SlowSnapshot, 5*time.Second), cmp.Or(t.SlowCommit, time.Second))
}

// traced makes a span for each request, except for those of probes and of Prometheus, which come
// all the time and say nothing.
func (g *settings) traced(next http.Handler) http.Handler {
	if g.deps.Tracing == nil {
		return next
	}
	traced := g.deps.Tracing.HTTP(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
			next.ServeHTTP(w, r)
		default:
			traced.ServeHTTP(w, r)
		}
	})
}

// watchSpans exports what became of spans.
func (g *Gateway) watchSpans(t *Tracing) {
	if t == nil || t.Spans == nil {
		return
	}
	g.metrics.WatchSpans(func() (exported, failed, dropped uint64) {
		n := t.Spans()
		return n.Exported, n.Failed, n.Dropped
	})
}
