package commands

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/watchtide/watchtide/cmd/gateway/internal/telemetry"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/stream/watch"
)

// spansPatience is how long the process waits at its end for the collector of spans.
const spansPatience = 3 * time.Second

// startTracing returns what exports spans; nil: the configuration and the environment name no
// collector.
func startTracing(ctx context.Context, c *config.Config, logger *slog.Logger) (*telemetry.Exporter, error) {
	s, err := telemetry.NewSettings(c.Tracing, os.LookupEnv)
	if err != nil || s.Endpoint == "" {
		return nil, err
	}
	s.Page = gateway.PageAttribute
	logger.Info("tracing", "endpoint", s.Endpoint, "protocol", s.Protocol)
	return telemetry.Start(ctx, s, buildVersion(), logger)
}

// tracingConfig is the gateway's part of tracing; nil: nothing is traced.
func tracingConfig(e *telemetry.Exporter, c config.Tracing) *gateway.Tracing {
	if e == nil {
		return nil
	}
	return &gateway.Tracing{
		Tracer: e.Tracer(), SlowSnapshot: c.SlowSnapshot, SlowCommit: c.SlowCommit,
		Spans: func() (n gateway.SpanCounts) {
			n.Exported, n.Failed, n.Dropped = e.Counts()
			return n
		},
	}
}

// traceResyncs returns a function that makes a span for each resync of a watch; nil: nothing is
// traced.
func traceResyncs(tracer trace.Tracer, name, source string) func(watch.Resync) {
	if tracer == nil {
		return nil
	}
	return func(r watch.Resync) {
		_, span := tracer.Start(context.Background(), "resync", trace.WithNewRoot(), trace.WithTimestamp(r.Began), trace.WithAttributes(
			attribute.String("watchtide.watch", name), attribute.String("watchtide.source", source), attribute.String("watchtide.resync.reason", r.Reason),
			attribute.Int64("watchtide.received", r.Received), attribute.Int("watchtide.resources", r.Resources), attribute.Int64("watchtide.revision", int64(r.Revision))))
		if r.Err != nil {
			span.SetStatus(codes.Error, fmt.Sprintf("%.256s", r.Err))
		}
		span.End(trace.WithTimestamp(r.Ended))
	}
}

// observe starts the tracing and the flight recorder that the configuration asks for.
func (s *daemon) observe(ctx context.Context, c *config.Config) (err error) {
	if s.spans, err = startTracing(ctx, c, s.logger); err != nil {
		return err
	}
	if c.Operations.FlightRecorder {
		s.flight, err = telemetry.Record()
	}
	return err
}

// stopObserving sends the last spans.
func (s *daemon) stopObserving() {
	s.flight.Stop()
	if s.spans != nil {
		s.spans.Close(spansPatience)
	}
}

// tracer returns what makes the spans; nil: nothing is traced.
func (s *daemon) tracer() trace.Tracer {
	if s.spans == nil {
		return nil
	}
	return s.spans.Tracer()
}
