package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what must happen. Only failing tests wait that long.
const patience = 30 * time.Second

// buffer is a log that several goroutines write.
type buffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// settingsOf returns the settings for an endpoint, with generous limits.
func settingsOf(t *testing.T, endpoint, protocol string) Settings {
	t.Helper()
	s, err := NewSettings(config.Tracing{Endpoint: endpoint, Protocol: protocol, RequestsPerSecond: 100_000, ClientRequestsPerSecond: 10}, noVariables)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func noVariables(string) (string, bool) { return "", false }

func start(t *testing.T, s Settings) (*Exporter, *buffer) {
	t.Helper()
	logged := &buffer{}
	e, err := Start(t.Context(), s, "v1.2.3", slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return e, logged
}

// requests makes a number of spans of requests.
func requests(e *Exporter, n int) {
	for i := range n {
		_, span := e.Tracer().Start(context.Background(), fmt.Sprint("request ", i), trace.WithSpanKind(trace.SpanKindServer))
		span.SetAttributes(attribute.String("long", strings.Repeat("x", 10_000)))
		span.End()
	}
}

// Spans reach a collector over both protocols, all of them at the latest when the exporter is
// closed, with the name of the service.
func TestSpansReachTheCollector(t *testing.T) {
	for protocol, serve := range map[string]func(*testing.T, *receiver) string{config.GRPCProtocol: overGRPC, config.HTTPProtobuf: overHTTP} {
		r := &receiver{}
		e, logged := start(t, settingsOf(t, serve(t, r), protocol))
		requests(e, 1000)
		e.Close(patience)
		if n := len(r.received()); n != 1000 {
			t.Fatalf("%s: %d spans arrived, want 1000; log: %s", protocol, n, logged)
		}
		if exported, failed, dropped := e.Counts(); exported != 1000 || failed != 0 || dropped != 0 {
			t.Errorf("%s: counted %d, %d, %d", protocol, exported, failed, dropped)
		}
		if r.resource["service.name"] != "watchtide" || r.resource["service.version"] != "v1.2.3" {
			t.Errorf("%s: resource %v", protocol, r.resource)
		}
		if text := r.spans[0].GetAttributes()[0].GetValue().GetStringValue(); len(text) != longestText {
			t.Errorf("%s: a text of %d bytes, want %d", protocol, len(text), longestText)
		}
		if protocol == config.HTTPProtobuf && (len(r.paths) == 0 || r.paths[0] != "/v1/traces") {
			t.Errorf("paths %q", r.paths)
		}
	}
}

// While the collector takes nothing, spans are dropped and counted, nobody waits, and the rest
// arrives once it takes them again.
func TestStuckCollector(t *testing.T) {
	r := &receiver{hold: make(chan struct{})}
	e, _ := start(t, settingsOf(t, overGRPC(t, r), config.GRPCProtocol))
	requests(e, 10*maxWaiting)
	if _, _, dropped := e.Counts(); dropped != 9*maxWaiting {
		t.Errorf("%d spans were dropped, want %d", dropped, 9*maxWaiting)
	}
	if n := e.waiting.Load(); n != maxWaiting {
		t.Errorf("%d spans wait, want %d", n, maxWaiting)
	}
	close(r.hold)
	e.Close(patience)
	if exported, failed, dropped := e.Counts(); exported != maxWaiting || failed != 0 || dropped != 9*maxWaiting {
		t.Errorf("in the end: counted %d, %d, %d", exported, failed, dropped)
	}
	if n := e.waiting.Load(); n != 0 {
		t.Errorf("%d spans still wait", n)
	}
}

// A process can end without its collector: whatever it does, the end is bounded, and the spans
// are counted as failed.
func TestCloseWithoutCollector(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close() // accepts, and never answers
	for _, protocol := range config.TracingProtocols {
		e, logged := start(t, settingsOf(t, "http://"+gone.Addr().String(), protocol))
		requests(e, 100)
		closed := make(chan struct{})
		go func() { defer close(closed); e.Close(10 * time.Millisecond) }()
		select {
		case <-closed:
		case <-time.After(patience):
			t.Fatalf("%s: Close does not return", protocol)
		}
		if exported, failed, dropped := e.Counts(); exported != 0 || failed != 100 || dropped != 0 {
			t.Errorf("%s: counted %d, %d, %d", protocol, exported, failed, dropped)
		}
		if !strings.Contains(logged.String(), "spans were not exported") {
			t.Errorf("%s: log: %s", protocol, logged)
		}
	}
}

// remoteParent is the context of a request with a traceparent.
func remoteParent(flags trace.TraceFlags, n byte) context.Context {
	return trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{n, 1}, SpanID: trace.SpanID{1}, TraceFlags: flags, Remote: true,
	}))
}

// A client can ask for the trace of its request, but clients cannot have everything traced.
func TestClientsCannotForceSampling(t *testing.T) {
	r := &receiver{}
	s := settingsOf(t, overGRPC(t, r), config.GRPCProtocol)
	s.Requests, s.ClientRequests = 5, 7
	e, _ := start(t, s)
	sampled := func(ctx context.Context) (n int) {
		for range 1000 {
			_, span := e.Tracer().Start(ctx, "r", trace.WithSpanKind(trace.SpanKindServer))
			if span.SpanContext().IsSampled() {
				n++
			}
			span.End()
		}
		return n
	}
	if n := sampled(remoteParent(0, 1)); n != 0 {
		t.Errorf("%d requests are traced whose client wants none", n)
	}
	began := time.Now()
	n := sampled(remoteParent(trace.FlagsSampled, 2)) + sampled(context.Background())
	// The limits are refilled while the test runs, however long that takes.
	if most := int(12 * (2 + time.Since(began).Seconds())); n < 12 || n > most {
		t.Errorf("%d requests are traced, want 12, and at most %d", n, most)
	}
	e.Close(patience)
}

// The sampled flag of pages asks for nothing: their requests count as those without a traceparent.
func TestPagesCannotAskForTraces(t *testing.T) {
	s := newSampler(Settings{Requests: 3, ClientRequests: 1000, Page: "page"})
	sampled := func(ctx context.Context, attributes ...attribute.KeyValue) (n int) {
		for range 100 {
			p := sdktrace.SamplingParameters{ParentContext: ctx, Kind: trace.SpanKindServer, Attributes: attributes}
			if s.ShouldSample(p).Decision == sdktrace.RecordAndSample {
				n++
			}
		}
		return n
	}
	synctest.Test(t, func(*testing.T) {
		page := attribute.Bool("page", true)
		if n := sampled(remoteParent(0, 1), page); n != 0 {
			t.Errorf("%d requests of pages are traced that want none", n)
		}
		if n := sampled(remoteParent(trace.FlagsSampled, 2), page); n != 3 {
			t.Errorf("%d requests of pages are traced, want the 3 of all requests", n)
		}
		if n := sampled(remoteParent(trace.FlagsSampled, 2)); n != 100 {
			t.Errorf("%d requests of a service are traced, want all 100", n)
		}
	})
}

// A child is traced if its parent is. A span that no request causes has a limit of its own, so
// that requests cannot keep it from being traced.
func TestOwnSpansHaveTheirOwnLimit(t *testing.T) {
	r := &receiver{}
	s := settingsOf(t, overGRPC(t, r), config.GRPCProtocol)
	s.Requests, s.ClientRequests = 1, 1
	e, _ := start(t, s)
	requests(e, 1000)
	ctx, own := e.Tracer().Start(context.Background(), "resync", trace.WithNewRoot())
	_, child := e.Tracer().Start(ctx, "child")
	child.End()
	own.End()
	e.Close(patience)
	if got := r.received(); !slices.Contains(got, "resync") || !slices.Contains(got, "child") {
		t.Errorf("received %q", got)
	}
}

// The settings come from the configuration, and what it leaves open from the standard
// variables.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		config    config.Tracing
		variables map[string]string
		endpoint  string // "" means that nothing is traced
		protocol  string
		wrong     string
	}{
		"nothing":          {},
		"a file":           {config: config.Tracing{Endpoint: "http://c:4318"}, endpoint: "http://c:4318/v1/traces", protocol: "http/protobuf"},
		"a file, gRPC":     {config: config.Tracing{Endpoint: "https://c:4317", Protocol: "grpc"}, endpoint: "https://c:4317", protocol: "grpc"},
		"a path":           {config: config.Tracing{Endpoint: "http://c/otlp/"}, endpoint: "http://c/otlp/v1/traces", protocol: "http/protobuf"},
		"a variable":       {variables: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, endpoint: "http://c:4318/v1/traces", protocol: "http/protobuf"},
		"for traces":       {variables: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:2/t"}, endpoint: "http://c:2/t", protocol: "http/protobuf"},
		"gRPC":             {variables: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, endpoint: "http://c:4317", protocol: "grpc"},
		"the file wins":    {config: config.Tracing{Endpoint: "http://c:1", Protocol: "grpc"}, variables: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:2", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, endpoint: "http://c:1", protocol: "grpc"},
		"disabled":         {config: config.Tracing{Endpoint: "http://c:1"}, variables: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		"no traces":        {variables: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1", "OTEL_TRACES_EXPORTER": "none"}},
		"a wrong URL":      {variables: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, wrong: "want the URL of a collector"},
		"a wrong protocol": {variables: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1"}, wrong: "want grpc or http/protobuf"},
	} {
		s, err := NewSettings(c.config, func(name string) (string, bool) { v, ok := c.variables[name]; return v, ok })
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: error %v, want %q", name, err, c.wrong)
			}
			continue
		}
		if err != nil || s.Endpoint != c.endpoint || c.endpoint != "" && s.Protocol != c.protocol {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
