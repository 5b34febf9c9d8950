// Package frame encodes the events of streams: as frames of a text/event-stream, as lines of NDJSON,
// and as the JSON objects that are the data of both. The frames of changes are made once, when the
// changes enter a log, and all formats are made of them.
package frame

import (
	"bytes"
	"encoding/json"
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

// Key is a key as written in a frame.
type Key struct {
	Text    string // without the quotes
	Base64  bool
	Escaped bool // the text is not the key itself
}

// NewKey returns a key as the frames of every watch have it.
func NewKey(key string) Key {
	if stream.PlainText(key) {
		return Key{Text: key}
	}
	wire, encoding := stream.WireKey(key)
	if encoding != "" {
		return Key{Text: wire, Base64: true}
	}
	quoted := stream.AppendJSONString(nil, key)
	return Key{Text: string(quoted[1 : len(quoted)-1]), Escaped: true}
}

// Changes writes and reads the frames of the upserts and deletes of a watch. A reader knows of a
// frame whether it is of a delete, and how long its key is.
type Changes struct {
	// Static after construction.
	watch          string
	upsert, delete string // up to the key
	// upsertData and deleteData are where the data begins in a frame.
	upsertData, deleteData int
}

const (
	afterKey         = `","revision":"`
	keyEncodingField = `,"key_encoding":"base64"`
	encodingField    = `,"encoding":"base64"`
	valueField       = `,"value":`
	leftField        = `,"left":true`
	changeEnd        = "}" + frameEnd
)

// ChangesOf returns the encoder of the changes of a watch.
func ChangesOf(watch string) Changes {
	c := Changes{watch: watch}
	begin := func(t stream.EventType) (frame string, data int) {
		head := SSE.begin(nil, t)
		return string(append(appendType(head, t, watch), `,"key":"`...)), len(head)
	}
	c.upsert, c.upsertData = begin(stream.Upsert)
	c.delete, c.deleteData = begin(stream.Delete)
	return c
}

// Watch returns the name of the watch.
func (c *Changes) Watch() string { return c.watch }

// Overhead is the most bytes that the frame of an upsert has besides its key and value.
func (c *Changes) Overhead() int {
	return len(c.upsert) + len(afterKey) + 20 + len(valueField) + len(encodingField) + len(changeEnd)
}

// Size is the exact size of the frame that Append appends.
func (c *Changes) Size(r *stream.Resource, deleted bool, k Key) int {
	n := len(k.Text) + len(afterKey) + decimalDigits(r.Revision) + 1 + len(changeEnd)
	if k.Base64 {
		n += len(keyEncodingField)
	}
	if deleted {
		return n + len(c.delete)
	}
	if r.Encoding != "" {
		n += len(encodingField)
	}
	return n + len(c.upsert) + len(valueField) + len(r.Value)
}

// Append appends the frame of an upsert or a delete.
func (c *Changes) Append(dst []byte, r *stream.Resource, deleted bool, k Key) []byte {
	if deleted {
		dst = append(dst, c.delete...)
	} else {
		dst = append(dst, c.upsert...)
	}
	return append(appendChange(dst, r, deleted, k), changeEnd...)
}

// SizeLeft is the exact size of the frame that AppendLeft appends.
func (c *Changes) SizeLeft(r *stream.Resource, k Key) int { return c.Size(r, true, k) + len(leftField) }

// AppendLeft appends the frame of the delete of a resource that is still there, but not in the
// window any more.
func (c *Changes) AppendLeft(dst []byte, r *stream.Resource, k Key) []byte {
	dst = appendChange(append(dst, c.delete...), r, true, k)
	return append(append(dst, leftField...), changeEnd...)
}

// IsLeft reports whether AppendLeft has made the frame of a delete.
func IsLeft(frame []byte) bool { return bytes.HasSuffix(frame, []byte(leftField+changeEnd)) }

// appendChange appends what follows the quotation mark before the key, up to the end of the object.
func appendChange(dst []byte, r *stream.Resource, deleted bool, k Key) []byte {
	dst = append(dst, k.Text...)
	dst = append(dst, afterKey...)
	dst = strconv.AppendUint(dst, r.Revision, 10)
	dst = append(dst, '"')
	if k.Base64 {
		dst = append(dst, keyEncodingField...)
	}
	if deleted {
		return dst
	}
	if r.Encoding != "" {
		dst = append(dst, encodingField...)
	}
	dst = append(dst, valueField...)
	return append(dst, r.Value...)
}

func decimalDigits(n uint64) int {
	digits := 1
	for n >= 10 {
		n /= 10
		digits++
	}
	return digits
}

// In returns an event in another format than that of its frame: a part of the frame.
func (c *Changes) In(f Format, frame []byte, deleted bool) []byte {
	end := len(frame) - len(frameEnd)
	if f == NDJSON {
		end++
	}
	if deleted {
		return frame[c.deleteData:end]
	}
	return frame[c.upsertData:end]
}

func (c *Changes) keyAt(deleted bool) int {
	if deleted {
		return len(c.delete)
	}
	return len(c.upsert)
}

// RawKey returns the key, which has n bytes, as written in a frame.
func (c *Changes) RawKey(frame []byte, deleted bool, n int) []byte {
	at := c.keyAt(deleted)
	return frame[at : at+n]
}

// KeyIn returns the key, which has n bytes in the frame, as the upstream has it.
func (c *Changes) KeyIn(frame []byte, deleted bool, n int, base64, escaped bool) string {
	raw := c.RawKey(frame, deleted, n)
	switch {
	case base64:
		key, err := stream.KeyFromWire(string(raw), stream.Base64)
		if err != nil {
			panic("stream: the log holds a key that is not base64: " + err.Error())
		}
		return key
	case escaped:
		var key string
		at := c.keyAt(deleted)
		if err := json.Unmarshal(frame[at-1:at+n+1], &key); err != nil {
			panic("stream: the log holds a key that is not JSON: " + err.Error())
		}
		return key
	}
	return string(raw)
}

// RevisionIn returns the revision in a frame whose key has n bytes.
func (c *Changes) RevisionIn(frame []byte, deleted bool, n int) uint64 {
	from, to := c.digits(frame, deleted, n)
	revision, err := strconv.ParseUint(string(frame[from:to]), 10, 64)
	if err != nil {
		panic("stream: the log holds a revision that is not a number: " + err.Error())
	}
	return revision
}

// digits is where the digits of the revision are.
func (c *Changes) digits(frame []byte, deleted bool, n int) (from, to int) {
	from = c.keyAt(deleted) + n + len(afterKey)
	to = from
	for frame[to] != '"' {
		to++
	}
	return from, to
}

// ValueIn returns the value in the frame of an upsert whose key has n bytes. It aliases the frame.
func (c *Changes) ValueIn(frame []byte, n int, keyBase64, valueBase64 bool) []byte {
	_, at := c.digits(frame, false, n)
	at += 1 + len(valueField)
	if keyBase64 {
		at += len(keyEncodingField)
	}
	if valueBase64 {
		at += len(encodingField)
	}
	end := len(frame) - len(changeEnd)
	return frame[at:end:end]
}
