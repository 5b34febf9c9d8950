package telemetry

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// ownPerSecond is how many spans that no request causes are traced in a second: resyncs, slow
// snapshots and slow commits.
const ownPerSecond = 10

// sampler decides which spans there are. A client can ask for the trace of its requests, with
// the flag "sampled" of its traceparent, but not of very many: beyond a limit, which all clients
// share, its requests are like those without a traceparent. So are the requests of web pages:
// their libraries may ask for all traces in every browser. A client can also ask not to be
// traced.
//
// All methods may be called from any goroutine.
type sampler struct {
	requests, clients, own *rate.Limiter
	page                   attribute.KeyValue
}

func newSampler(s Settings) sampler {
	perSecond := func(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(n), n) }
	return sampler{requests: perSecond(s.Requests), clients: perSecond(s.ClientRequests), own: perSecond(ownPerSecond), page: s.Page.Bool(true)}
}

// ShouldSample implements sdktrace.Sampler.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	decision := sdktrace.Drop
	if s.samples(trace.SpanContextFromContext(p.ParentContext), p) {
		decision = sdktrace.RecordAndSample
	}
	return sdktrace.SamplingResult{Decision: decision}
}

func (s sampler) samples(parent trace.SpanContext, p sdktrace.SamplingParameters) bool {
	switch {
	case parent.IsValid() && !parent.IsRemote():
		return parent.IsSampled()
	case p.Kind != trace.SpanKindServer:
		return s.own.Allow()
	case !parent.IsValid():
		return s.requests.Allow()
	case !parent.IsSampled():
		return false
	case slices.Contains(p.Attributes, s.page):
		return s.requests.Allow()
	}
	return s.clients.Allow() || s.requests.Allow()
}

// Description implements sdktrace.Sampler.
func (s sampler) Description() string {
	return fmt.Sprintf("PerSecond{requests:%v,clients:%v,own:%v}", s.requests.Limit(), s.clients.Limit(), s.own.Limit())
}
