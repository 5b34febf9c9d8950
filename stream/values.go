package stream

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"unicode/utf8"
)

// Values is what the bytes of an upstream are taken for.
type Values string

const (
	// AnyValues takes each value for what fits first: JSON, text, other bytes. A text
	// that is valid JSON, such as 1.30, is a number.
	AnyValues Values = ""
	// TextValues takes all values for text, also those that are valid JSON.
	TextValues Values = "text"
	// JSONValues takes all values for JSON, with or without a byte order mark. One that
	// is not valid is served in base64, so that it cannot be mistaken for a JSON string.
	JSONValues Values = "json"
	// Base64Values serves the bytes themselves.
	Base64Values Values = "base64"
)

// WantValues says what Values may be.
const WantValues = "text, json or base64; without it, JSON where a value is valid JSON, text where it is UTF-8, else base64"

// Check reports Values that do not exist.
func (v Values) Check() error {
	switch v {
	case AnyValues, TextValues, JSONValues, Base64Values:
		return nil
	}
	return &InvalidError{What: "values", Got: fmt.Sprintf("%.40q", string(v)), Want: WantValues}
}

// byteOrderMark is at the start of what some editors write.
const byteOrderMark = "\ufeff"

// Value makes a value from an upstream's bytes. Encoding is Base64 for bytes in base64, also
// for text that is not UTF-8. The result may alias raw.
func (v Values) Value(raw []byte) (value []byte, encoding string) {
	switch v {
	case AnyValues:
		return ValueFromBytes(raw)
	case TextValues:
		if utf8.Valid(raw) {
			return AppendJSONString(make([]byte, 0, len(raw)+2), string(raw)), ""
		}
	case JSONValues:
		if value, ok := CompactJSON(bytes.TrimPrefix(raw, []byte(byteOrderMark))); ok {
			return value, ""
		}
	}
	return base64Value(raw)
}

func base64Value(raw []byte) (value []byte, encoding string) {
	out := make([]byte, base64.StdEncoding.EncodedLen(len(raw))+2)
	out[0], out[len(out)-1] = '"', '"'
	base64.StdEncoding.Encode(out[1:len(out)-1], raw)
	return out, Base64
}
