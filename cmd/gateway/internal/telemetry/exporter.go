package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/loglimit"
)

const (
	// maxWaiting is how many spans may wait for the collector. A span has about 1 KiB.
	maxWaiting = 2048
	// maxBatch is how many spans are sent at once.
	maxBatch = 512
	// longestText is how many bytes of a text a span has.
	longestText = 256
	// failuresPerMinute is how many failures to export are logged.
	failuresPerMinute = 2
)

// Exporter makes spans and sends them to a collector. The memory of the spans that wait is
// bounded, and nobody waits for the collector.
//
// All methods may be called from any goroutine.
type Exporter struct {
	// Static after construction.
	provider *sdktrace.TracerProvider
	client   sdktrace.SpanExporter
	queue    sdktrace.SpanProcessor
	log      *slog.Logger
	alive    context.Context // ends once Close has lost its patience
	kill     context.CancelFunc

	// Atomic.
	waiting                   atomic.Int64 // spans that are in the queue or on their way
	exported, failed, dropped atomic.Uint64
}

// Start returns an exporter for the settings, which name an endpoint. It does not wait for the
// collector. Close must be called.
func Start(ctx context.Context, s Settings, version string, log *slog.Logger) (*Exporter, error) {
	e := &Exporter{log: loglimit.New(log, failuresPerMinute)}
	e.alive, e.kill = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if e.client, err = s.client(e.alive); err != nil {
		e.kill()
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "watchtide"), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		e.kill()
		return nil, fmt.Errorf("tracing: %w", err)
	}
	// What the SDK reports besides failures to export says nothing to an operator.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("tracing", "error", err) }))
	e.queue = sdktrace.NewBatchSpanProcessor(counting{e}, sdktrace.WithMaxQueueSize(maxWaiting), sdktrace.WithMaxExportBatchSize(maxBatch),
		sdktrace.WithExportTimeout(30*time.Second))
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = longestText
	e.provider = sdktrace.NewTracerProvider(sdktrace.WithSampler(newSampler(s)), sdktrace.WithResource(about),
		sdktrace.WithRawSpanLimits(limits), sdktrace.WithSpanProcessor(gate{e}))
	return e, nil
}

// client returns the client of the collector. It reads the standard variables for headers,
// certificates, compression and time-outs.
func (s Settings) client(ctx context.Context) (sdktrace.SpanExporter, error) {
	if s.Protocol == config.GRPCProtocol {
		return otlptrace.New(ctx, otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(s.Endpoint)))
	}
	return otlptrace.New(ctx, otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(s.Endpoint)))
}

// Tracer returns what makes the spans.
func (e *Exporter) Tracer() trace.Tracer {
	return e.provider.Tracer("github.com/watchtide/watchtide")
}

// Counts returns how many spans were exported, failed to be, and were dropped since too many
// were waiting.
func (e *Exporter) Counts() (exported, failed, dropped uint64) {
	return e.exported.Load(), e.failed.Load(), e.dropped.Load()
}

// Close sends the spans that wait. It gives up after a while.
func (e *Exporter) Close(patience time.Duration) {
	stop := time.AfterFunc(patience, e.kill)
	defer stop.Stop()
	if err := e.provider.Shutdown(context.Background()); err != nil {
		e.log.Warn("the last spans were not exported", "error", err)
	}
	e.kill()
}

// gate lets spans into the queue while there is room for them.
type gate struct{ of *Exporter }

// OnStart implements sdktrace.SpanProcessor.
func (g gate) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (g gate) OnEnd(s sdktrace.ReadOnlySpan) {
	if g.of.waiting.Add(1) > maxWaiting {
		g.of.waiting.Add(-1)
		g.of.dropped.Add(1)
		return
	}
	g.of.queue.OnEnd(s)
}

// Shutdown implements sdktrace.SpanProcessor.
func (g gate) Shutdown(ctx context.Context) error { return g.of.queue.Shutdown(ctx) }

// ForceFlush implements sdktrace.SpanProcessor.
func (g gate) ForceFlush(ctx context.Context) error { return g.of.queue.ForceFlush(ctx) }

// counting counts what leaves the queue.
type counting struct{ of *Exporter }

// ExportSpans implements sdktrace.SpanExporter.
func (c counting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e := c.of
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.alive, cancel)()
	err := e.client.ExportSpans(ctx, spans)
	e.waiting.Add(-int64(len(spans)))
	if err == nil {
		e.exported.Add(uint64(len(spans)))
		return nil
	}
	e.failed.Add(uint64(len(spans)))
	e.log.Warn("spans were not exported", "spans", len(spans), "error", err)
	return nil // it is logged
}

// Shutdown implements sdktrace.SpanExporter.
func (c counting) Shutdown(context.Context) error { return c.of.client.Shutdown(c.of.alive) }
