// Package frame encodes the events of streams: as frames of a text/event-stream, as lines of NDJSON,
// and as the JSON objects that are the data of both. The frames of changes are made once, when the
// changes enter a log, and all formats are made of them.
package frame

import (
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Format is the form in which events are written.
type Format uint8

// The formats.
const (
	SSE    Format = iota + 1 // frames of a text/event-stream, as in the HTML standard
	NDJSON                   // one JSON object per line
	JSON                     // the objects alone
)

// String returns the name of the format.
func (f Format) String() string {
	switch f {
	case SSE:
		return "sse"
	case NDJSON:
		return "ndjson"
	}
	return "json"
}

// A frame of a text/event-stream is
//
//	event: upsert
//	data: {"type":"upsert","watch":"services","key":"web","revision":"7","value":{}}
//
// and an empty line. An id goes between the data line and the empty line. A line of NDJSON is the
// object of the data line.
const (
	eventField = "event: "
	dataField  = "\ndata: "
	frameEnd   = "\n\n" // after the data
)

// Append appends an event whose data another function of this package made; id may be empty.
func (f Format) Append(dst []byte, t stream.EventType, data, id []byte) []byte {
	return f.end(append(f.begin(dst, t), data...), id)
}

// AppendEvent appends an event of a watch; id may be empty.
func (f Format) AppendEvent(dst []byte, e stream.Event, id []byte) []byte {
	return f.end(AppendData(f.begin(dst, e.Type), e), id)
}

func (f Format) begin(dst []byte, t stream.EventType) []byte {
	if f != SSE {
		return dst
	}
	dst = append(dst, eventField...)
	dst = append(dst, t.String()...)
	return append(dst, dataField...)
}

func (f Format) end(dst, id []byte) []byte {
	switch {
	case f == JSON:
		return dst
	case len(id) > 0:
		return f.AppendID(append(dst, '\n'), id)
	case f == SSE:
		return append(dst, frameEnd...)
	}
	return append(dst, '\n')
}

// AppendID appends what follows the line of an event that has an id: the rest of the frame in a
// text/event-stream, another line in NDJSON.
func (f Format) AppendID(dst, id []byte) []byte {
	switch f {
	case SSE:
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		return append(dst, frameEnd...)
	case NDJSON:
		dst = append(dst, `{"type":"position","id":"`...)
		dst = append(dst, id...)
		return append(dst, "\"}\n"...)
	}
	return dst
}

// BeforeID returns a frame, or several, without the empty line at the end, to be followed by
// AppendID.
func BeforeID(frames []byte) []byte { return frames[:len(frames)-1] }

// AppendRetry appends the hint when to reconnect, if the format has one besides that of goodbye.
func (f Format) AppendRetry(dst []byte, retry time.Duration) []byte {
	if f != SSE {
		return dst
	}
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, retry.Milliseconds(), 10)
	return append(dst, frameEnd...)
}

var (
	sseHeartbeat    = []byte(": heartbeat\n\n")
	ndjsonHeartbeat = []byte(`{"type":"heartbeat"}` + "\n")
)

// Heartbeat returns the bytes that show that a stream is alive.
func (f Format) Heartbeat() []byte {
	if f == SSE {
		return sseHeartbeat
	}
	return ndjsonHeartbeat
}

// AppendGoodbye appends the last event of a stream.
func (f Format) AppendGoodbye(dst []byte, reason stream.GoodbyeReason, retry time.Duration) []byte {
	return f.Append(dst, stream.Goodbye, AppendGoodbye(nil, reason, retry), nil)
}

// AppendComment appends a line that every reader of event streams skips.
func AppendComment(dst []byte, text string) []byte {
	oneLine := strings.NewReplacer("\r", " ", "\n", " ")
	return append(append(append(dst, ": "...), oneLine.Replace(text)...), frameEnd...)
}
