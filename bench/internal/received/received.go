// Package received reads the events of a stream, as its subscriber received them.
package received

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Event is one event of a stream, with the id after it.
type Event struct {
	stream.Event
	// Kind is the name of the event; "" for an id alone.
	Kind string
	// ID is the id after it; "" if there was none.
	ID string
	// RetryMS is that of a goodbye.
	RetryMS int
}

// Reader reads the events of a body, in either format. An event that the end of the
// body cuts off is dropped. It belongs to one goroutine.
type Reader struct {
	lines  *bufio.Scanner
	ndjson bool
}

// New returns a Reader of a body of text/event-stream, or of application/x-ndjson.
func New(body io.Reader, ndjson bool) *Reader {
	s := bufio.NewScanner(body)
	s.Buffer(make([]byte, 4<<10), 1<<20)
	s.Split(wholeLines)
	return &Reader{lines: s, ndjson: ndjson}
}

// wholeLines is bufio.ScanLines without an unterminated last line.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Next returns the next event; io.EOF at a clean end of the body.
func (r *Reader) Next() (Event, error) {
	if r.ndjson {
		return r.nextLine()
	}
	var data []byte
	var out Event
	for r.lines.Scan() {
		line := r.lines.Bytes()
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case len(line) == 0 && data != nil:
			return out.read(data)
		case len(line) == 0 && out.ID != "":
			return out, nil
		case string(name) == "data":
			data = bytes.Clone(value)
		case string(name) == "id":
			out.ID = string(value)
		}
	}
	return Event{}, r.end()
}

func (r *Reader) nextLine() (Event, error) {
	if !r.lines.Scan() {
		return Event{}, r.end()
	}
	var out Event
	return out.read(bytes.Clone(r.lines.Bytes()))
}

func (r *Reader) end() error {
	if err := r.lines.Err(); err != nil {
		return err
	}
	return io.EOF
}

// payload is the JSON object of any event.
type payload struct {
	Type, Watch, Key, Reason, State, ID string
	Revision                            uint64 `json:",string"`
	Value                               json.RawMessage
	Count                               int
	Resumed                             bool
	Skipped                             uint64
	Since                               time.Time
	RetryMS                             int `json:"retry_ms"`
}

func (e Event) read(data []byte) (Event, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return e, err
	}
	if p.Type == "position" { // NDJSON has the id on its own line
		e.ID = p.ID
		return e, nil
	}
	e.Kind, e.RetryMS = p.Type, p.RetryMS
	state, _ := stream.ParseState(p.State)
	e.Event = stream.Event{
		Type: eventType(p.Type), Watch: p.Watch, Resource: stream.Resource{Key: p.Key, Revision: p.Revision, Value: p.Value},
		Reason: p.Reason, Revision: p.Revision, Count: p.Count, Resumed: p.Resumed, Skipped: p.Skipped,
		State: state, Since: p.Since,
	}
	return e, nil
}

// eventType is 0 for anything that is not an event of a watch.
func eventType(name string) stream.EventType {
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		if strings.EqualFold(t.String(), name) {
			return t
		}
	}
	return 0
}
