//go:build servers

package soak

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// frame is one event of a stream as received, with the id after it.
type frame struct {
	stream.Event
	kind string // as the stream names it; "" for an id alone
	id   string
}

// frames reads the events of a body, in either format. An event that the end of the
// body cuts off is dropped.
type frames struct {
	lines  *bufio.Scanner
	ndjson bool
}

func newFrames(body io.Reader, ndjson bool) *frames {
	s := bufio.NewScanner(body)
	s.Buffer(make([]byte, 4<<10), 1<<20)
	s.Split(wholeLines)
	return &frames{lines: s, ndjson: ndjson}
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

// next returns the next event; io.EOF at a clean end of the body.
func (f *frames) next() (frame, error) {
	if f.ndjson {
		return f.nextLine()
	}
	var data []byte
	var out frame
	for f.lines.Scan() {
		line := f.lines.Bytes()
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case len(line) == 0 && data != nil:
			return out.read(data)
		case len(line) == 0 && out.id != "":
			return out, nil
		case string(name) == "data":
			data = bytes.Clone(value)
		case string(name) == "id":
			out.id = string(value)
		}
	}
	return frame{}, f.end()
}

func (f *frames) nextLine() (frame, error) {
	if !f.lines.Scan() {
		return frame{}, f.end()
	}
	var out frame
	return out.read(bytes.Clone(f.lines.Bytes()))
}

func (f *frames) end() error {
	if err := f.lines.Err(); err != nil {
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
}

func (f frame) read(data []byte) (frame, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return f, err
	}
	if p.Type == "position" { // NDJSON has the id on its own line
		f.id = p.ID
		return f, nil
	}
	f.kind = p.Type
	state, _ := stream.ParseState(p.State)
	f.Event = stream.Event{
		Type: eventType(p.Type), Watch: p.Watch, Resource: stream.Resource{Key: p.Key, Revision: p.Revision, Value: p.Value},
		Reason: p.Reason, Revision: p.Revision, Count: p.Count, Resumed: p.Resumed, Skipped: p.Skipped,
		State: state, Since: p.Since,
	}
	return f, nil
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
