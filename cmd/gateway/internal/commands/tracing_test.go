package commands

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spanLog is a collector of OpenTelemetry that keeps the names of spans and their traces.
//
// All methods may be called from any goroutine.
type spanLog struct {
	mu    sync.Mutex // guards spans
	spans []string
}

// ServeHTTP implements http.Handler.
func (l *spanLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in collector.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &in)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range in.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				l.spans = append(l.spans, fmt.Sprintf("%s %x", s.GetName(), s.GetTraceId()))
			}
		}
	}
}

// with returns the spans whose name begins so.
func (l *spanLog) with(name string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.spans), func(s string) bool { return !strings.HasPrefix(s, name) })
}

// What was traced is at the collector when the process has ended, whether the configuration
// names it or the environment.
func TestServeTraces(t *testing.T) {
	for _, from := range []string{"configuration", "environment"} {
		t.Run(from, func(t *testing.T) {
			log := &spanLog{}
			server := httptest.NewServer(log)
			defer server.Close()
			conf := quick
			if from == "environment" {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
			} else {
				conf += "\ntracing: { endpoint: \"" + server.URL + "\" }\n"
			}
			g := serve(t, "--config", file(t, "gateway.yaml", conf))
			g.awaitPrimed()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url()+"/v1/watches", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Close = true
			request.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
			answer, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if _, text := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/metrics", ""); !strings.Contains(text, `watchtide_spans_total{outcome="dropped"} 0`) {
				t.Error("the metrics do not count spans")
			}
			g.signals <- os.Interrupt
			if code := g.awaitCode(); code != 0 {
				t.Errorf("exit code %d: %s", code, g.logs)
			}
			if len(log.with("GET /v1/watches 4bf92f3577b34da6a3ce929d0e0e4736")) != 1 || len(log.with("GET /v1/watches/{watch}/resources ")) != 1 || len(log.with("resync ")) == 0 {
				t.Errorf("the collector has %q; log: %s", log.spans, g.logs)
			}
		})
	}
}

// A collector that is wrong is reported by config check and at the start.
func TestWrongCollectorIsReported(t *testing.T) {
	conf := file(t, "gateway.yaml", quick)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")
	for _, args := range [][]string{{"config", "check", conf}, {"serve", "--config", conf, "--http", "127.0.0.1:0"}} {
		if code, _, stderr := command(t, args...); code != exitError || !strings.Contains(stderr, `OTEL_EXPORTER_OTLP_ENDPOINT is "collector:4317": want the URL of a collector`) {
			t.Errorf("%s: exit code %d: %s", args[0], code, stderr)
		}
	}
}

// The flight recorder is off unless it is asked for, and only operators get a copy of it.
func TestServeFlightRecorder(t *testing.T) {
	for _, on := range []bool{false, true} {
		conf := file(t, "gateway.yaml", quick+fmt.Sprintf("\noperations: { flight_recorder: %t }\n", on))
		g := serve(t, "--config", conf)
		status, body := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/debug/pprof/flight", "")
		if on != (status == http.StatusOK) || on != strings.HasPrefix(body, "go 1.") || !on && !strings.Contains(body, "operations.flight_recorder: true") {
			t.Errorf("on %t: %d %.200q", on, status, body)
		}
		if status, _ := g.do("GET", "/debug/pprof/flight", ""); status != http.StatusNotFound {
			t.Errorf("the public listener has it: %d", status)
		}
		g.signals <- syscall.SIGTERM
		if code := g.awaitCode(); code != 0 {
			t.Errorf("exit code %d: %s", code, g.logs)
		}
	}
}
