package gateway

import (
	"net/http"
	"strconv"
	"strings"
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
func chooseFormat(parameter string, given bool, accept []string) (format, *problem) {
	if !given {
		return acceptedFormat(accept)
	}
	switch parameter {
	case "sse":
		return formatSSE, nil
	case "ndjson":
		return formatNDJSON, nil
	}
	return 0, badParameter("format", "format is %q: want sse or ndjson", parameter)
}

// acceptedFormat returns the format that the client prefers. A missing or empty
// Accept header accepts everything. Between two equally preferred formats, the one
// named more precisely wins, then SSE.
func acceptedFormat(accept []string) (format, *problem) {
	if strings.TrimSpace(strings.Join(accept, "")) == "" {
		return formatSSE, nil
	}
	sse, ndjson := preferenceFor(accept, typeSSE), preferenceFor(accept, typeNDJSON)
	switch {
	case ndjson.beats(sse) && ndjson.q > 0 && ndjson.precision > 0:
		return formatNDJSON, nil
	case sse.q > 0:
		return formatSSE, nil
	}
	p := newProblem(http.StatusNotAcceptable, "Accept is %q: want %s or %s", strings.Join(accept, ", "), typeSSE, typeNDJSON)
	p.Parameter = "Accept"
	return 0, p
}

// namesEventStream reports whether Accept lists text/event-stream by name.
func namesEventStream(accept []string) bool {
	p := preferenceFor(accept, typeSSE)
	return p.precision == 2 && p.q > 0
}

// preference is what a client says about one media type.
type preference struct {
	q         float64 // 0: not acceptable
	precision int     // 0: by */* or not at all, 1: by type/*, 2: by name
}

func (p preference) beats(other preference) bool {
	return p.q > other.q || p.q == other.q && p.precision > other.precision
}

// preferenceFor returns the preference of the most precise range that covers a media
// type (RFC 9110, section 12.5.1).
func preferenceFor(accept []string, mediaType string) preference {
	best := preference{precision: -1}
	for _, header := range accept {
		for item := range strings.SplitSeq(header, ",") {
			rang, parameters, _ := strings.Cut(item, ";")
			precision := coverage(strings.ToLower(strings.TrimSpace(rang)), mediaType)
			if precision > best.precision {
				best = preference{q: quality(parameters), precision: precision}
			}
		}
	}
	best.precision = max(best.precision, 0)
	return best
}

// coverage returns how precisely a media range covers a media type; -1: not at all.
func coverage(rang, mediaType string) int {
	major, _, _ := strings.Cut(mediaType, "/")
	switch rang {
	case mediaType:
		return 2
	case major + "/*":
		return 1
	case "*/*":
		return 0
	}
	return -1
}

// quality reads the weight among the parameters of a media range. It is 1 if not
// given and 0 if it cannot be read.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return 0
		}
		return q
	}
	return 1
}
