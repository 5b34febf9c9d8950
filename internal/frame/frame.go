// Package frame writes the events of a stream as text: as frames of a text/event-stream,
// and as the JSON objects that are their data.
package frame

import (
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// A frame is an event as written in a text/event-stream:
//
//	event: upsert
//	data: {"type":"upsert","watch":"services","key":"web","revision":"7","value":{}}
//
// The data line is the same object that NDJSON carries, so one slab of frames serves
// both. An id goes between the data line and the empty line.

// HelloWatch is one watch of a stream, as named in hello.
type HelloWatch struct {
	Watch string
	// Resume means that the stream continues after a position.
	Resume bool
}

// Append appends an event as written in a text/event-stream; id may be empty.
// The other functions of this file make the data.
func Append(dst []byte, t stream.EventType, data, id []byte) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, t.String()...)
	dst = append(dst, "\ndata: "...)
	dst = append(dst, data...)
	dst = append(dst, '\n')
	dst = AppendID(dst, id)
	return append(dst, '\n')
}

// AppendOwn appends an event of a watch as written in a text/event-stream; id may be empty.
func AppendOwn(dst []byte, e stream.Event, id []byte) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, e.Type.String()...)
	dst = append(dst, "\ndata: "...)
	dst = append(AppendEvent(dst, e), '\n')
	return append(AppendID(dst, id), '\n')
}

// AppendID appends the line with the id of a frame, or nothing if there is none.
func AppendID(dst, id []byte) []byte {
	if len(id) == 0 {
		return dst
	}
	dst = append(dst, "id: "...)
	dst = append(dst, id...)
	return append(dst, '\n')
}

// AppendPositionLine appends the line that NDJSON has in place of an event stream's
// id.
func AppendPositionLine(dst, id []byte) []byte {
	dst = append(dst, `{"type":"position","id":"`...)
	dst = append(dst, id...)
	return append(dst, "\"}\n"...)
}

// AppendHello appends the data of hello: the first event of every response. instance
// names the answering process, and id the stream if it can be renewed; else it is empty.
func AppendHello(dst []byte, instance, id string, heartbeat time.Duration, watches []HelloWatch) []byte {
	dst = append(dst, `{"type":"hello","heartbeat_ms":`...)
	dst = strconv.AppendInt(dst, heartbeat.Milliseconds(), 10)
	dst = append(dst, `,"instance":`...)
	dst = stream.AppendJSONString(dst, instance)
	if id != "" {
		dst = append(dst, `,"stream":`...)
		dst = stream.AppendJSONString(dst, id)
	}
	dst = append(dst, `,"watches":[`...)
	for i, w := range watches {
		if i > 0 {
			dst = append(dst, ',')
		}
		mode := "snapshot"
		if w.Resume {
			mode = "resume"
		}
		dst = append(dst, `{"watch":`...)
		dst = stream.AppendJSONString(dst, w.Watch)
		dst = append(dst, `,"mode":"`...)
		dst = append(dst, mode...)
		dst = append(dst, `"}`...)
	}
	return append(dst, "]}"...)
}

// AppendGoodbye appends the data of goodbye: the last event of a stream that
// the server ends on purpose. The client should come back after retry.
func AppendGoodbye(dst []byte, reason stream.GoodbyeReason, retry time.Duration) []byte {
	dst = append(dst, `{"type":"goodbye","reason":"`...)
	dst = append(dst, reason...)
	dst = append(dst, `","retry_ms":`...)
	dst = strconv.AppendInt(dst, retry.Milliseconds(), 10)
	return append(dst, '}')
}

// AppendEvent appends the data of an event of a watch: every type but hello and
// goodbye, which belong to the stream and not to a watch.
func AppendEvent(dst []byte, e stream.Event) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, e.Type.String()...)
	dst = append(dst, `","watch":`...)
	dst = stream.AppendJSONString(dst, e.Watch)
	switch e.Type {
	case stream.Reset:
		dst = appendField(dst, "reason", e.Reason)
	case stream.Upsert, stream.Delete:
		dst = appendResource(dst, e)
	case stream.EndOfSnapshot:
		dst = appendRevision(dst, e.Revision)
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendInt(dst, int64(e.Count), 10)
		if e.Resumed {
			dst = append(dst, `,"resumed":true`...)
		}
	case stream.Bookmark:
		dst = appendRevision(dst, e.Revision)
		if e.Skipped > 0 {
			dst = append(dst, `,"skipped":`...)
			dst = strconv.AppendUint(dst, e.Skipped, 10)
		}
		if e.Horizon > 0 {
			dst = append(dst, `,"horizon":"`...)
			dst = strconv.AppendUint(dst, e.Horizon, 10)
			dst = append(dst, '"')
		}
		if e.Conflated > 0 {
			dst = append(dst, `,"conflated":"`...)
			dst = strconv.AppendUint(dst, e.Conflated, 10)
			dst = append(dst, '"')
		}
	case stream.StatusChange:
		dst = appendStatus(dst, e)
	}
	return append(dst, '}')
}

func appendResource(dst []byte, e stream.Event) []byte {
	key, keyEncoding := stream.WireKey(e.Resource.Key)
	dst = appendField(dst, "key", key)
	dst = appendRevision(dst, e.Resource.Revision)
	if keyEncoding != "" {
		dst = appendField(dst, "key_encoding", keyEncoding)
	}
	if e.Type == stream.Delete {
		return dst
	}
	if e.Resource.Encoding != "" {
		dst = appendField(dst, "encoding", e.Resource.Encoding)
	}
	dst = append(dst, `,"value":`...)
	return append(dst, e.Resource.Value...)
}

func appendStatus(dst []byte, e stream.Event) []byte {
	dst = appendField(dst, "state", e.State.String())
	if !e.Since.IsZero() {
		dst = append(dst, `,"since":"`...)
		dst = e.Since.UTC().Truncate(time.Millisecond).AppendFormat(dst, time.RFC3339Nano)
		dst = append(dst, '"')
	}
	if e.Reason != "" {
		dst = appendField(dst, "reason", e.Reason)
	}
	return dst
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return stream.AppendJSONString(dst, value)
}

// appendRevision writes a revision as a string: JSON numbers lose digits beyond
// 2^53 in browsers.
func appendRevision(dst []byte, revision uint64) []byte {
	dst = append(dst, `,"revision":"`...)
	dst = strconv.AppendUint(dst, revision, 10)
	return append(dst, '"')
}
