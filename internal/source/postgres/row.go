package postgres

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// The types whose text is not served as a JSON string.
const (
	typeBool        = 16
	typeBytea       = 17
	typeInt8        = 20
	typeInt2        = 21
	typeInt4        = 23
	typeOID         = 26
	typeJSON        = 114
	typeFloat4      = 700
	typeFloat8      = 701
	typeTimestamp   = 1114
	typeTimestamptz = 1184
	typeNumeric     = 1700
	typeJSONB       = 3802
)

// firstUserType is the first number of a type that does not come with the server.
const firstUserType = 16384

// column is a column that is served, or is a part of the key.
type column struct {
	name string
	typ  uint32 // as the stream names it
	base uint32 // of a domain, what it is made of
	head []byte // its name as in the value
}

func newColumn(name string, typ, base uint32) column {
	return column{name: name, typ: typ, base: base, head: append(stream.AppendJSONString(nil, name), ':')}
}

// layout says how rows are made of tuples. A tuple has the columns of a query, or those of a relation of
// the stream, which may be in another order.
type layout struct {
	served  []column
	key     []string
	at      []int // of each served column, its place in a tuple
	keyAt   []int // of each column of the key
	columns int   // of a tuple
}

// place returns the layout for tuples that have columns in an order.
func place(served []column, key, order []string) (*layout, error) {
	l := &layout{served: served, key: key, columns: len(order)}
	find := func(name string) (int, error) {
		if at := slices.Index(order, name); at >= 0 {
			return at, nil
		}
		return 0, fmt.Errorf("%w: column %.63q is not there", errChanged, name)
	}
	for _, c := range served {
		at, err := find(c.name)
		if err != nil {
			return nil, err
		}
		l.at = append(l.at, at)
	}
	for _, name := range key {
		at, err := find(name)
		if err != nil {
			return nil, err
		}
		l.keyAt = append(l.keyAt, at)
	}
	return l, nil
}

// keyOf returns the key of the resource that is a row. What a tuple lacks of it is taken from another
// one: a part that is stored out of line, and has not changed.
func (l *layout) keyOf(tuple, other []cell) (string, error) {
	if len(tuple) != l.columns {
		return "", fmt.Errorf("%w: a row of %d columns, want %d", stream.ErrInvalid, len(tuple), l.columns)
	}
	parts := make([]string, 0, 1)
	for i, at := range l.keyAt {
		c := tuple[at]
		if c.kind == cellUnchanged && len(other) == l.columns {
			c = other[at]
		}
		if c.kind != cellText {
			return "", fmt.Errorf("%w: a row without a value of %q, which is a part of its key: want a replica identity that has it", stream.ErrInvalid, l.key[i])
		}
		parts = append(parts, string(c.text))
	}
	return joinKey(parts), nil
}

// joinKey makes one text of the parts of a key. If there are several, "/" is between them, and "/" and
// "%" inside of them are escaped.
func joinKey(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	escape := strings.NewReplacer("%", "%25", "/", "%2F")
	for i, part := range parts {
		parts[i] = escape.Replace(part)
	}
	return strings.Join(parts, "/")
}

// valueOf returns the value of the resource that is a row: an object with a field for each column. What
// the tuple lacks is taken from the value that it had before.
func (l *layout) valueOf(tuple []cell, before []byte) ([]byte, error) {
	if len(tuple) != l.columns {
		return nil, fmt.Errorf("%w: a row of %d columns, want %d", stream.ErrInvalid, len(tuple), l.columns)
	}
	var old map[string]json.RawMessage
	size := 2
	for i, at := range l.at {
		size += len(l.served[i].head) + len(tuple[at].text) + 5
	}
	value := append(make([]byte, 0, size), '{')
	for i, at := range l.at {
		if i > 0 {
			value = append(value, ',')
		}
		column := &l.served[i]
		value = append(value, column.head...)
		switch c := tuple[at]; c.kind {
		case cellNull:
			value = append(value, "null"...)
		case cellText:
			value = column.append(value, c.text)
		default:
			if old == nil && json.Unmarshal(before, &old) != nil {
				return nil, fmt.Errorf("%w: a row that is not known was changed in a part", stream.ErrUnresumable)
			}
			known, ok := old[column.name]
			if !ok {
				return nil, fmt.Errorf("%w: a row without a value of %.63q", stream.ErrUnresumable, column.name)
			}
			value = append(value, known...)
		}
	}
	return append(value, '}'), nil
}

// append appends the text of a value as JSON.
func (c *column) append(dst, text []byte) []byte {
	switch c.base {
	case typeBool:
		if bytes.Equal(text, []byte("t")) {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case typeInt2, typeInt4, typeInt8, typeOID, typeFloat4, typeFloat8, typeNumeric:
		if isNumber(text) {
			return append(dst, text...)
		}
	case typeJSON, typeJSONB:
		if compact, ok := stream.CompactJSON(text); ok {
			return append(dst, compact...)
		}
	case typeBytea:
		if digits, ok := bytes.CutPrefix(text, []byte(`\x`)); ok {
			return appendBase64(dst, digits)
		}
	case typeTimestamp, typeTimestamptz:
		return appendTime(dst, text)
	}
	return stream.AppendJSONString(dst, string(text))
}

// isNumber reports whether a text is a number of JSON, which NaN and infinity are not.
func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && json.Valid(text)
}

// appendBase64 appends bytes that are written in hexadecimal digits.
func appendBase64(dst, digits []byte) []byte {
	raw := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(raw, digits); err != nil {
		return stream.AppendJSONString(dst, `\x`+string(digits))
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, raw)
	return append(dst, '"')
}

// appendTime appends a time of the ISO style of the server in UTC, as RFC 3339 has it. Times that it
// does not have (infinity, or years of other than four digits) stay as they are.
func appendTime(dst, text []byte) []byte {
	if len(text) < len("2006-01-02 15:04:05") || text[4] != '-' || text[10] != ' ' || bytes.HasSuffix(text, []byte("BC")) {
		return stream.AppendJSONString(dst, string(text))
	}
	text, utc := bytes.CutSuffix(text, []byte("+00"))
	dst = append(dst, '"')
	dst = append(dst, text[:10]...)
	dst = append(dst, 'T')
	dst = append(dst, text[11:]...)
	if utc {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
}
