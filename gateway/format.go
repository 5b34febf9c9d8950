package gateway

import (
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/accept"
)

// format is how a stream is written.
type format uint8

const (
	formatSSE    format = iota + 1 // text/event-stream, as in the HTML standard
	formatNDJSON                   // one JSON object per line
)

const (
	typeSSE    = "text/event-stream"
	typeNDJSON = "application/x-ndjson"
)

// chooseFormat decides by the parameter format, if given, otherwise by the Accept
// headers.
func chooseFormat(parameter string, given bool, headers []string) (format, *problem.Problem) {
	if !given {
		return acceptedFormat(headers)
	}
	switch parameter {
	case "sse":
		return formatSSE, nil
	case "ndjson":
		return formatNDJSON, nil
	}
	return 0, problem.BadParameter("format", "format is %q: want sse or ndjson", parameter)
}

// acceptedFormat returns the format that the client prefers. A missing or empty
// Accept header accepts everything. Between two equally preferred formats, the one
// named more precisely wins, then SSE.
func acceptedFormat(headers []string) (format, *problem.Problem) {
	if strings.TrimSpace(strings.Join(headers, "")) == "" {
		return formatSSE, nil
	}
	sse, ndjson := accept.MediaType(headers, typeSSE), accept.MediaType(headers, typeNDJSON)
	switch {
	case ndjson.Beats(sse) && ndjson.Quality > 0 && ndjson.Precision > 0:
		return formatNDJSON, nil
	case sse.Quality > 0:
		return formatSSE, nil
	}
	p := problem.New(http.StatusNotAcceptable, "Accept is %q: want %s or %s", strings.Join(headers, ", "), typeSSE, typeNDJSON)
	p.Parameter = "Accept"
	return 0, p
}

// namesEventStream reports whether Accept lists text/event-stream by name.
func namesEventStream(headers []string) bool {
	p := accept.MediaType(headers, typeSSE)
	return p.Precision == accept.ByName && p.Quality > 0
}
