package wire

import (
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/headers"
)

// private is the beginning of Cache-Control in an answer for one principal only.
const private = "private, no-store"

// MarkPrivate sets headers that forbid caches and proxies to store an answer. They also apply
// to an answer with the headers of a stream.
func MarkPrivate(h http.Header) {
	h.Set("Cache-Control", private)
	h.Add("Vary", "Authorization, Cookie")
}

// SetStreamHeaders sets headers that make every cache and proxy on the way pass the
// bytes on as they come. What MarkPrivate has set stays true.
func SetStreamHeaders(h http.Header, f frame.Format, coding Coding) {
	cache, vary := "no-cache, no-store, no-transform", "Accept, Origin, Accept-Encoding"
	if h.Get("Cache-Control") == private {
		cache, vary = private+", no-transform", vary+", Authorization, Cookie"
	}
	h.Set("Content-Type", TypeSSE+"; charset=utf-8")
	if f == frame.NDJSON {
		h.Set("Content-Type", TypeNDJSON)
	}
	if coding != Identity {
		h.Set("Content-Encoding", coding.String())
	}
	h.Set("Cache-Control", cache)
	h.Set("X-Accel-Buffering", "no") // nginx
	h.Set("Incremental", "?1")       // RFC 10036
	h.Set("Vary", vary)
}

// The media types of the formats.
const (
	TypeSSE    = "text/event-stream"
	TypeNDJSON = "application/x-ndjson"
)

// ChooseFormat decides by the parameter format, if given, otherwise by the Accept
// headers.
func ChooseFormat(parameter string, given bool, accept []string) (frame.Format, *problem.Problem) {
	if !given {
		return acceptedFormat(accept)
	}
	switch parameter {
	case frame.SSE.String():
		return frame.SSE, nil
	case frame.NDJSON.String():
		return frame.NDJSON, nil
	}
	return 0, problem.BadParameter("format", "format is %q: want sse or ndjson", parameter)
}

// acceptedFormat returns the format that the client prefers. A missing or empty
// Accept header accepts everything. Between two equally preferred formats, the one
// named more precisely wins, then SSE.
func acceptedFormat(accept []string) (frame.Format, *problem.Problem) {
	if strings.TrimSpace(strings.Join(accept, "")) == "" {
		return frame.SSE, nil
	}
	sse, ndjson := headers.PreferenceFor(accept, TypeSSE), headers.PreferenceFor(accept, TypeNDJSON)
	switch {
	case ndjson.Beats(sse) && ndjson.Quality > 0 && ndjson.Precision > 0:
		return frame.NDJSON, nil
	case sse.Quality > 0:
		return frame.SSE, nil
	}
	p := problem.New(http.StatusNotAcceptable, "Accept is %q: want %s or %s", strings.Join(accept, ", "), TypeSSE, TypeNDJSON)
	p.Parameter = "Accept"
	return 0, p
}

// NamesEventStream reports whether Accept lists text/event-stream by name.
func NamesEventStream(accept []string) bool {
	p := headers.PreferenceFor(accept, TypeSSE)
	return p.Precision == headers.ByName && p.Quality > 0
}
