package gateway

import (
	"strconv"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
)

// framing is the form in which events appear in the body of a response. The data of
// an event is the same in all of them.
type framing interface {
	transport() string // label of the metrics
	contentType() string
	heartbeat() []byte
	// appendRetry appends the hint when to come back, if the format has one outside
	// of goodbye.
	appendRetry(dst []byte, retry time.Duration) []byte
	// appendData appends an event that is not in any log: hello and goodbye.
	appendData(dst []byte, t stream.EventType, data []byte) []byte
	// appendBatch appends the bytes of b, to be written one after the other.
	// They alias the log and id.
	appendBatch(dst [][]byte, b *log.Batch, id []byte) [][]byte
}

func (f format) framing() framing {
	if f == formatNDJSON {
		return ndjsonFraming{}
	}
	return sseFraming{}
}

// sseFraming is text/event-stream (HTML standard, section 9.2).
type sseFraming struct{}

var sseHeartbeat = []byte(": heartbeat\n\n")

func (sseFraming) transport() string   { return metrics.SSE }
func (sseFraming) contentType() string { return typeSSE + "; charset=utf-8" }
func (sseFraming) heartbeat() []byte   { return sseHeartbeat }

func (sseFraming) appendRetry(dst []byte, retry time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, retry.Milliseconds(), 10)
	return append(dst, "\n\n"...)
}

func (sseFraming) appendData(dst []byte, t stream.EventType, data []byte) []byte {
	return log.AppendFrame(dst, t, data, nil)
}

func (sseFraming) appendBatch(dst [][]byte, b *log.Batch, id []byte) [][]byte {
	return b.AppendSSE(dst, id)
}

// ndjsonFraming is one JSON object per line.
type ndjsonFraming struct{}

var ndjsonHeartbeat = []byte(`{"type":"heartbeat"}` + "\n")

func (ndjsonFraming) transport() string   { return metrics.NDJSON }
func (ndjsonFraming) contentType() string { return typeNDJSON }
func (ndjsonFraming) heartbeat() []byte   { return ndjsonHeartbeat }

func (ndjsonFraming) appendRetry(dst []byte, _ time.Duration) []byte { return dst }

func (ndjsonFraming) appendData(dst []byte, _ stream.EventType, data []byte) []byte {
	return append(append(dst, data...), '\n')
}

func (ndjsonFraming) appendBatch(dst [][]byte, b *log.Batch, id []byte) [][]byte {
	return b.AppendNDJSON(dst, id)
}
