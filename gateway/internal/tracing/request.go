package tracing

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	grpccodes "google.golang.org/grpc/codes"
)

const (
	// agentKept is how many bytes of a user agent a span has.
	agentKept = 128
	// pathKept is how many bytes of a path a span has.
	pathKept = 256
)

// request is a request or a call that is traced.
//
// Owned by the goroutine of the request.
type request struct {
	span   trace.Span
	method string          // of HTTP; empty for a call
	route  func() string   // the pattern of the path that has matched
	status int             // of the answer over HTTP; 0: none was written
	code   *grpccodes.Code // of the answer over gRPC; nil: it is not known
}

// requestKey is the key of the request in its context.
type requestKey struct{}

// HTTP makes a span for each request. The handler is one of a chi.Router.
func (t *Tracing) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := t.tracer.Start(remote(r.Context(), r.Header.Get("Traceparent")), r.Method, optionsOf(r.Header)...)
		if !span.IsRecording() {
			next.ServeHTTP(w, r)
			return
		}
		span.SetAttributes(attribute.String("http.request.method", r.Method), attribute.String("url.path", cut(r.URL.Path, pathKept)),
			attribute.String("network.protocol.version", strings.TrimPrefix(r.Proto, "HTTP/")), attribute.String("user_agent.original", cut(r.UserAgent(), agentKept)))
		one := &request{span: span, method: r.Method, route: func() string { return chi.RouteContext(ctx).RoutePattern() }}
		defer one.end()
		next.ServeHTTP(statusWriter{w, one}, r.WithContext(context.WithValue(ctx, requestKey{}, one)))
	})
}

// Page is the attribute, true, of the spans of requests that a web page has made with a traceparent.
const Page = attribute.Key("watchtide.page")

// optionsOf returns what the sampler is told about a request. Browsers add these headers, and no
// page can remove them.
func optionsOf(header http.Header) []trace.SpanStartOption {
	kind := trace.WithSpanKind(trace.SpanKindServer)
	if header.Get("Traceparent") == "" || header.Get("Origin") == "" && header.Get("Sec-Fetch-Mode") == "" {
		return []trace.SpanStartOption{kind}
	}
	return []trace.SpanStartOption{kind, trace.WithAttributes(Page.Bool(true))}
}

// Call makes the span of a gRPC call, whose method is /service/method. The function that it
// returns ends the span.
func (t *Tracing) Call(ctx context.Context, method, traceparent string) (context.Context, func(grpccodes.Code)) {
	if t == nil {
		return ctx, func(grpccodes.Code) {}
	}
	method = strings.TrimPrefix(method, "/")
	traced, span := t.tracer.Start(remote(ctx, traceparent), method, trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return ctx, func(grpccodes.Code) {}
	}
	span.SetAttributes(attribute.String("rpc.system", "grpc"), attribute.String("rpc.method", method))
	one := &request{span: span}
	return context.WithValue(traced, requestKey{}, one), func(c grpccodes.Code) {
		one.code = &c
		one.end()
	}
}

// StreamBegins ends the span of a request that is answered by a stream: one that lasts as long
// as the stream would say nothing.
func StreamBegins(ctx context.Context) {
	if one, traced := ctx.Value(requestKey{}).(*request); traced {
		one.span.SetAttributes(attribute.Bool("watchtide.stream", true))
		one.end()
	}
}

// end ends the span. Only the first call counts.
func (r *request) end() {
	if !r.span.IsRecording() {
		return
	}
	if r.method != "" {
		r.endHTTP()
	} else if c := r.code; c != nil {
		r.span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(*c)))
		if *c == grpccodes.Internal || *c == grpccodes.Unknown {
			r.span.SetStatus(codes.Error, c.String())
		}
	}
	r.span.End()
}

func (r *request) endHTTP() {
	if pattern := r.route(); pattern != "" {
		r.span.SetName(r.method + " " + pattern)
		r.span.SetAttributes(attribute.String("http.route", pattern))
	}
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.span.SetAttributes(attribute.Int("http.response.status_code", r.status))
	if r.status >= http.StatusInternalServerError && r.status != http.StatusServiceUnavailable {
		r.span.SetStatus(codes.Error, http.StatusText(r.status))
	}
}

// statusWriter records the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	of *request
}

// WriteHeader implements http.ResponseWriter.
func (w statusWriter) WriteHeader(status int) {
	if w.of.status == 0 && status >= http.StatusOK {
		w.of.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// remote returns the context of a request whose client has sent a traceparent (W3C Trace
// Context). Its tracestate and its baggage are ignored: a client could fill the memory with
// them.
func remote(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// cut returns the beginning of a text of a client.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "�")
}
