package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// The names of the transports in metrics and lists of subscribers.
const (
	TransportSSE    = "sse"
	TransportNDJSON = "ndjson"
)

// Framing is the form in which events appear in the body of a response. The data of
// an event is the same in all of them.
type Framing interface {
	Transport() string // label of the metrics
	contentType() string
	Heartbeat() []byte
	// AppendRetry appends the hint when to reconnect, if the format has one outside
	// of goodbye.
	AppendRetry(dst []byte, retry time.Duration) []byte
	// AppendData appends an event that is not in any log: hello and goodbye.
	AppendData(dst []byte, t stream.EventType, data []byte) []byte
	// AppendBatch appends the bytes of b, to be written one after the other.
	// They alias the log and id.
	AppendBatch(dst [][]byte, b *log.Batch, id []byte) [][]byte
}

// Framing returns the bytes around events in this format.
func (f Format) Framing() Framing {
	if f == NDJSON {
		return ndjsonFraming{}
	}
	return sseFraming{}
}

// sseFraming is text/event-stream (HTML standard, section 9.2).
type sseFraming struct{}

var sseHeartbeat = []byte(": heartbeat\n\n")

func (sseFraming) Transport() string   { return TransportSSE }
func (sseFraming) contentType() string { return TypeSSE + "; charset=utf-8" }
func (sseFraming) Heartbeat() []byte   { return sseHeartbeat }

func (sseFraming) AppendRetry(dst []byte, retry time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, retry.Milliseconds(), 10)
	return append(dst, "\n\n"...)
}

func (sseFraming) AppendData(dst []byte, t stream.EventType, data []byte) []byte {
	return frame.Append(dst, t, data, nil)
}

func (sseFraming) AppendBatch(dst [][]byte, b *log.Batch, id []byte) [][]byte {
	return b.AppendSSE(dst, id)
}

// ndjsonFraming is one JSON object per line.
type ndjsonFraming struct{}

var ndjsonHeartbeat = []byte(`{"type":"heartbeat"}` + "\n")

func (ndjsonFraming) Transport() string   { return TransportNDJSON }
func (ndjsonFraming) contentType() string { return TypeNDJSON }
func (ndjsonFraming) Heartbeat() []byte   { return ndjsonHeartbeat }

func (ndjsonFraming) AppendRetry(dst []byte, _ time.Duration) []byte { return dst }

func (ndjsonFraming) AppendData(dst []byte, _ stream.EventType, data []byte) []byte {
	return append(append(dst, data...), '\n')
}

func (ndjsonFraming) AppendBatch(dst [][]byte, b *log.Batch, id []byte) [][]byte {
	return b.AppendNDJSON(dst, id)
}

// AppendComment appends a line that every reader of event streams skips.
func AppendComment(dst []byte, text string) []byte {
	oneLine := strings.NewReplacer("\r", " ", "\n", " ")
	return append(append(append(dst, ": "...), oneLine.Replace(text)...), "\n\n"...)
}

// AppendGoodbye appends the last event of a stream.
func AppendGoodbye(dst []byte, f Framing, reason stream.GoodbyeReason, retry time.Duration) []byte {
	return f.AppendData(dst, stream.Goodbye, frame.AppendGoodbye(nil, reason, retry))
}

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
func SetStreamHeaders(h http.Header, f Format, gzip bool) {
	cache, vary := "no-cache, no-store, no-transform", "Accept, Origin, Accept-Encoding"
	if h.Get("Cache-Control") == private {
		cache, vary = private+", no-transform", vary+", Authorization, Cookie"
	}
	h.Set("Content-Type", f.Framing().contentType())
	if gzip {
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Cache-Control", cache)
	h.Set("X-Accel-Buffering", "no") // nginx
	h.Set("Incremental", "?1")       // RFC 10036
	h.Set("Vary", vary)
}
