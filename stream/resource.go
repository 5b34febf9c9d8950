package stream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// Base64 is the encoding of values and keys that are not text.
const Base64 = "base64"

// Resource is one member of a watch.
type Resource struct {
	// Key is unique in the watch. It may hold any bytes; on the wire a key
	// that is not UTF-8 is sent in base64 (see WireKey).
	Key string
	// Revision is the place in the upstream's own order at which the resource
	// last changed; never 0.
	Revision uint64
	// Value is JSON text on one line, immutable from here on: neither the sender nor
	// the receiver of a Resource may modify the bytes. It is made by ValueFromBytes, Values.Value
	// or CompactJSON.
	Value []byte
	// Encoding is Base64 if Value is a JSON string that holds bytes in base64,
	// else empty.
	Encoding string
}

// ValueFromBytes makes a value from an upstream's bytes, by the first rule that
// fits: valid JSON is kept as it is (digits, key order and spacing inside numbers
// and strings untouched; line breaks between tokens removed), text becomes a JSON
// string, anything else becomes base64 in a JSON string, with the encoding named.
// The result may alias raw.
func ValueFromBytes(raw []byte) (value []byte, encoding string) {
	if v, ok := CompactJSON(raw); ok {
		return v, ""
	}
	if utf8.Valid(raw) {
		return AppendJSONString(make([]byte, 0, len(raw)+2), string(raw)), ""
	}
	return base64Value(raw)
}

// CompactJSON returns raw as JSON text on one line, and whether it is valid JSON in
// UTF-8 at all. Text that is already on one line is returned unchanged.
func CompactJSON(raw []byte) ([]byte, bool) {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return nil, false
	}
	if OneLine(raw) {
		return bytes.TrimSpace(raw), true
	}
	var out bytes.Buffer
	out.Grow(len(raw))
	if err := json.Compact(&out, raw); err != nil {
		return nil, false
	}
	return out.Bytes(), true
}

// OneLine reports whether b has no line break, so that it fits in one line of an
// event stream. In valid JSON a raw line break can only be between tokens.
func OneLine(b []byte) bool {
	return bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0
}

// WireKey returns the key as it is on the wire, and its key_encoding: Base64 for a
// key that is not UTF-8, else empty.
func WireKey(key string) (wire, encoding string) {
	if utf8.ValidString(key) {
		return key, ""
	}
	return base64.StdEncoding.EncodeToString([]byte(key)), Base64
}

// KeyFromWire is the reverse of WireKey. It fails for an unknown encoding and
// for text that is not base64.
func KeyFromWire(wire, encoding string) (string, error) {
	switch encoding {
	case "":
		return wire, nil
	case Base64:
		raw, err := base64.StdEncoding.DecodeString(wire)
		return string(raw), err
	default:
		return "", &InvalidError{What: "key_encoding", Got: encoding, Want: `"base64" or nothing`}
	}
}
