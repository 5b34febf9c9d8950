package frame

import (
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// HelloWatch is one watch of a stream, as named in hello.
type HelloWatch struct {
	Watch string
	// Resume means that the stream continues after a position.
	Resume bool
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

// AppendData appends the data of an event of a watch: every type but hello and
// goodbye, which belong to the stream and not to a watch.
func AppendData(dst []byte, e stream.Event) []byte {
	dst = appendType(dst, e.Type, e.Watch)
	switch e.Type {
	case stream.Reset:
		dst = appendField(dst, "reason", e.Reason)
	case stream.Upsert, stream.Delete:
		dst = appendResource(dst, e)
	case stream.EndOfSnapshot:
		dst = appendRevision(dst, e.Revision)
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendInt(dst, int64(e.Count), 10)
		dst = appendWindow(dst, e)
		if e.Resumed {
			dst = append(dst, `,"resumed":true`...)
		}
		if e.Verify {
			dst = append(dst, `,"verify":true`...)
		}
		if e.Deletes {
			dst = appendHorizon(dst, e)
		}
		dst = appendDigest(dst, e)
	case stream.Bookmark:
		dst = appendRevision(dst, e.Revision)
		dst = appendWindow(dst, e)
		if e.Skipped > 0 {
			dst = append(dst, `,"skipped":`...)
			dst = strconv.AppendUint(dst, e.Skipped, 10)
		}
		if e.Horizon > 0 {
			dst = appendHorizon(dst, e)
		}
		if e.Conflated > 0 {
			dst = append(dst, `,"conflated":"`...)
			dst = strconv.AppendUint(dst, e.Conflated, 10)
			dst = append(dst, '"')
		}
		dst = appendDigest(dst, e)
	case stream.StatusChange:
		dst = appendStatus(dst, e)
	}
	return append(dst, '}')
}

// appendWindow appends what a window says besides its resources.
func appendWindow(dst []byte, e stream.Event) []byte {
	if !e.Window {
		return dst
	}
	dst = strconv.AppendInt(append(dst, `,"total":`...), int64(e.Total), 10)
	dst = strconv.AppendInt(append(dst, `,"before":`...), int64(e.Before), 10)
	if e.Move > 0 {
		dst = strconv.AppendUint(append(dst, `,"move":`...), e.Move, 10)
	}
	if e.Next == "" {
		return dst
	}
	return appendField(dst, "next", e.Next)
}

func appendHorizon(dst []byte, e stream.Event) []byte {
	dst = append(dst, `,"horizon":"`...)
	return append(strconv.AppendUint(dst, e.Horizon, 10), '"')
}

func appendDigest(dst []byte, e stream.Event) []byte {
	if e.Digest == "" {
		return dst
	}
	return appendField(dst, "digest", e.Digest)
}

func appendType(dst []byte, t stream.EventType, watch string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, t.String()...)
	dst = append(dst, `","watch":`...)
	return stream.AppendJSONString(dst, watch)
}

func appendResource(dst []byte, e stream.Event) []byte {
	dst = append(dst, `,"key":"`...)
	dst = appendChange(dst, &e.Resource, e.Type == stream.Delete, NewKey(e.Resource.Key))
	if e.Left {
		dst = append(dst, leftField...)
	}
	return dst
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
