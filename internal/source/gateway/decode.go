package gateway

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// types are the relevant event types.
var types = map[client.EventType]adapter.EventType{
	client.Reset: adapter.Reset, client.Upsert: adapter.Upsert, client.Delete: adapter.Delete,
	client.EndOfSnapshot: adapter.EndOfSnapshot, client.Bookmark: adapter.Bookmark, client.Status: adapter.Status,
}

// decode reads and checks an event of a watch.
func decode(from *client.Event, watch string) (e adapter.Event, err error) {
	e.Type, e.Position = types[from.Type], ownPosition(from.ID, watch)
	switch e.Type {
	case adapter.Upsert:
		e.Resource, err = decodeUpsert(&from.Resource)
	case adapter.Delete:
		e.Resource, err = decodeDelete(&from.Resource)
	case adapter.EndOfSnapshot:
		e.Count = uint64(max(0, from.Count))
		e.Revision, err = decodeRevision(from.Revision)
		if e.Deletes = from.Horizon != ""; e.Deletes && err == nil {
			e.Horizon, err = decodeRevision(from.Horizon)
		}
	case adapter.Bookmark:
		e.Revision, err = decodeRevision(from.Revision)
		if err == nil && from.Horizon != "" {
			e.Horizon, err = decodeRevision(from.Horizon)
		}
		if err == nil && from.Conflated != "" {
			e.Conflated, err = decodeRevision(from.Conflated)
		}
	case adapter.Status:
		e.State, _ = stream.ParseState(string(from.State))
		e.Reason = string(from.Reason)
	}
	return e, err
}

// ownPosition returns the position of a watch in an id, which has those of all
// watches of the request.
func ownPosition(id, watch string) string {
	for text := range strings.SplitSeq(id, ",") {
		if rest, ok := strings.CutPrefix(text, watch); ok && strings.HasPrefix(rest, "@") {
			return text
		}
	}
	return ""
}

func decodeUpsert(m *client.Resource) (stream.Resource, error) {
	r, err := decodeDelete(m)
	if err != nil {
		return r, err
	}
	value, ok := textOf(m.Value)
	switch {
	case !ok:
		err = fmt.Errorf("value of key %.80q is %.40q: want JSON in UTF-8", r.Key, m.Value)
	case r.Revision == 0:
		err = fmt.Errorf("revision of key %.80q is 0: want 1 or more", r.Key)
	case m.Encoding != "" && m.Encoding != stream.Base64:
		err = fmt.Errorf("encoding of key %.80q is %.40q: want %q or nothing", r.Key, m.Encoding, stream.Base64)
	}
	r.Value, r.Encoding = value, m.Encoding
	return r, err
}

// decodeDelete reads the fields of every change: a key and a revision.
func decodeDelete(m *client.Resource) (r stream.Resource, err error) {
	if r.Key, err = stream.KeyFromWire(m.Key, m.KeyEncoding); err != nil {
		return r, fmt.Errorf("key %.80q: %w", m.Key, err)
	}
	r.Revision, err = decodeRevision(m.Revision)
	return r, err
}

// textOf returns a value as it is stored. It was checked to be JSON when the
// event was read; checking twice would take a tenth of the time of a snapshot.
func textOf(value []byte) (text []byte, ok bool) {
	if bytes.IndexByte(value, '\n') >= 0 { // of an event of several data lines
		return stream.CompactJSON(value)
	}
	return bytes.TrimSpace(value), len(value) > 0 && utf8.Valid(value)
}

func decodeRevision(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("revision %.40q: want a decimal number in quotation marks", text)
	}
	return n, nil
}
