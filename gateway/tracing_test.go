package gateway

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent = "00-" + clientTrace + "-00f067aa0ba902b7-01"
)

// recordSpans returns a tracing that samples what parents say, and everything else.
func recordSpans() (*Tracing, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	return &Tracing{Tracer: provider.Tracer("test"), SlowSnapshot: 2 * time.Second, SlowCommit: time.Second}, spans
}

// ended returns the spans of a name that have ended.
func ended(spans *tracetest.SpanRecorder, name string) []sdktrace.ReadOnlySpan {
	return slices.DeleteFunc(spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.Name() != name })
}

// attributesOf returns the attributes of a span as texts.
func attributesOf(s sdktrace.ReadOnlySpan) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes() {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// A request has a span with its route and status. It is a child of the client's, has no query,
// and there is none for probes.
func TestRequestsAreTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spans := recordSpans()
		r := newRig(t, Config{Tracing: c, Metrics: true}, "a")
		r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
		r.get("/v1/watches/a/changes?wait=0s&prefix=secret", "Traceparent: "+traceparent, "Tracestate: x=secret", "User-Agent: wall").Text()
		r.get("/v1/watches/missing/events", "Traceparent: nonsense").Text()
		r.get("/healthz").Text()
		r.get("/readyz").Text()
		synctest.Wait()
		if n := len(spans.Ended()); n != 2 {
			t.Fatalf("%d spans, want 2", n)
		}
		poll := ended(spans, "GET /v1/watches/{watch}/changes")
		if len(poll) != 1 {
			t.Fatalf("spans: %v", spans.Ended())
		}
		got := attributesOf(poll[0])
		if poll[0].SpanContext().TraceID().String() != clientTrace || !poll[0].Parent().IsRemote() || got["http.response.status_code"] != "200" ||
			got["http.route"] != "/v1/watches/{watch}/changes" || got["url.path"] != "/v1/watches/a/changes" || got["user_agent.original"] != "wall" {
			t.Errorf("the long poll: trace %s, %v", poll[0].SpanContext().TraceID(), got)
		}
		if poll[0].SpanContext().TraceState().Len() != 0 {
			t.Error("the client's tracestate is kept")
		}
		for _, text := range got {
			if strings.Contains(text, "secret") {
				t.Errorf("the query is in the span: %v", got)
			}
		}
		missing := ended(spans, "GET /v1/watches/{watch}/events")
		if len(missing) != 1 || missing[0].Parent().IsValid() || attributesOf(missing[0])["http.response.status_code"] != "404" {
			t.Errorf("the stream of a watch that does not exist: %v", missing)
		}
	})
}

// The requests of pages are marked for the sampler, if they bring a parent.
func TestRequestsOfPagesAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spans := recordSpans()
		r := newRig(t, Config{Tracing: c}, "a")
		r.Prime("a", 1)
		for _, test := range []struct {
			headers []string
			want    string
		}{
			{[]string{"Traceparent: " + traceparent}, ""},
			{[]string{"Origin: " + ours}, ""},
			{[]string{"Traceparent: " + traceparent, "Origin: " + ours}, "true"},
			{[]string{"Traceparent: " + traceparent, "Sec-Fetch-Mode: cors"}, "true"},
		} {
			spans.Reset()
			r.get("/v1/watches", test.headers...).Text()
			synctest.Wait()
			all := spans.Ended()
			if len(all) != 1 || attributesOf(all[0])[string(PageAttribute)] != test.want {
				t.Errorf("%q: spans %v, want one with %s %q", test.headers, all, PageAttribute, test.want)
			}
		}
	})
}

// A client that is not sampled is not traced.
func TestUnsampledRequestsAreNotTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spans := recordSpans()
		r := newRig(t, Config{Tracing: c}, "a")
		r.Prime("a", 1)
		r.get("/v1/events?watch=a", "Traceparent: "+strings.TrimSuffix(traceparent, "1")+"0").Text()
		if n := len(spans.Ended()); n != 0 {
			t.Errorf("%d spans", n)
		}
	})
}

// The span of a stream ends when the stream begins, whatever carries it, and a snapshot that
// takes long is its child, with an exemplar.
func TestSlowSnapshotsAreTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spans := recordSpans()
		r := newRig(t, Config{Tracing: c, Metrics: true}, "a", "b")
		r.Prime("b", 1)
		fast := r.get("/v1/events?watch=b")
		fast.Text()
		slow := r.get("/v1/watches/a/events", "Traceparent: "+traceparent)
		slow.Text()
		if n := len(ended(spans, "GET /v1/events")) + len(ended(spans, "GET /v1/watches/{watch}/events")); n != 2 {
			t.Errorf("%d spans of open streams, want 2", n)
		}
		time.Sleep(3 * time.Second)
		r.Prime("a", 7, gatewaytest.Resource("k", 7, "1"))
		slow.Text()
		synctest.Wait()
		got := ended(spans, "slow snapshot")
		if len(got) != 1 || got[0].SpanContext().TraceID().String() != clientTrace || got[0].EndTime().Sub(got[0].StartTime()) != 3*time.Second {
			t.Fatalf("slow snapshots: %v", got)
		}
		if a := attributesOf(got[0]); a["watchtide.watch"] != "a" || a["watchtide.transport"] != "sse" || a["watchtide.bytes"] == "" {
			t.Errorf("attributes %v", a)
		}
		if text := r.openMetrics(); !regexp.MustCompile(`watchtide_end_of_snapshot_seconds_bucket\{le="5\.0"\} \d+ # \{trace_id="` + clientTrace + `"\} 3`).MatchString(text) {
			t.Errorf("no exemplar: %s", linesOf(text, "end_of_snapshot"))
		}
	})
}

// A commit that is slow to reach subscribers has one span, which is the exemplar of all of them.
// One that is fast has none.
func TestSlowCommitsAreTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spans := recordSpans()
		r := newRig(t, Config{Tracing: c, Metrics: true}, "a")
		r.Prime("a", 1)
		var streams []*rawConn
		for range 3 {
			conn := r.dial(rawGet("/v1/events?watch=a"))
			readUntil(t, conn, "end_of_snapshot")
			streams = append(streams, conn)
		}
		synctest.Wait()
		r.Commit("a", 2, gatewaytest.Resource("k", 2, `"fast"`))
		for _, conn := range streams {
			readUntil(t, conn, "fast")
		}
		if n := len(ended(spans, "slow commit")); n != 0 {
			t.Errorf("%d spans of a commit that was fast", n)
		}
		if r.sockets != nil { // else the clients are slow
			r.sockets.Intercept(func(call string, p []byte) {
				if call == "write" && strings.Contains(string(p), "late") {
					time.Sleep(1500 * time.Millisecond)
				}
			})
		}
		began := time.Now()
		r.Commit("a", 3, gatewaytest.Resource("k", 3, `"late`+strings.Repeat("x", 1<<20)+`"`))
		time.Sleep(1500 * time.Millisecond)
		for _, conn := range streams {
			readUntil(t, conn, "a@e1-3")
		}
		synctest.Wait()
		time.Sleep(5 * time.Second)
		got := ended(spans, "slow commit")
		if len(got) != 1 || !got[0].StartTime().Equal(began) || got[0].EndTime().Sub(began) < 1500*time.Millisecond || attributesOf(got[0])["watchtide.watches"] != `["a"]` {
			t.Fatalf("slow commits: %v", got)
		}
		if text := r.openMetrics(); !strings.Contains(text, `watchtide_commit_to_write_seconds_bucket{le="5.0"} `) || !strings.Contains(text, `# {trace_id="`+got[0].SpanContext().TraceID().String()+`"}`) {
			t.Errorf("no exemplar: %s", linesOf(text, "commit_to_write"))
		}
	})
}

// Calls are traced like requests, and take on the client's trace.
func TestCallsAreTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spans := recordSpans()
		r := newGRPCRig(t, Config{Tracing: c}, "a")
		r.Prime("a", 1)
		ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "traceparent", traceparent))
		defer cancel()
		if _, err := r.client.GetWatch(ctx, &api.GetWatchRequest{Watch: "missing"}); err == nil {
			t.Error("a watch that does not exist was found")
		}
		list, err := r.client.WatchList(ctx, &api.WatchListRequest{Watch: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := list.Recv(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for name, code := range map[string]string{"watchtide.v1.WatchService/GetWatch": "5", "watchtide.v1.WatchService/WatchList": ""} {
			got := ended(spans, name)
			if len(got) != 1 || got[0].SpanContext().TraceID().String() != clientTrace || attributesOf(got[0])["rpc.grpc.status_code"] != code {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

// openMetrics returns the metrics in the format that has exemplars.
func (r *rig) openMetrics() string {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: r.private.Dial, DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodGet, "http://localhost/metrics", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	answer, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// linesOf returns the lines of a text that have a part.
func linesOf(text, part string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			out.WriteString(line)
		}
	}
	return out.String()
}
