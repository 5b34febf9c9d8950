package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/watchtide/watchtide/stream"
)

// placedError is an error in the text of a file, with its position.
type placedError struct {
	line, column int // from 1; columns count characters
	message      string
}

// Error returns for instance `3:5: unknown escape`.
func (e *placedError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.line, e.column, e.message)
}

// byteOrderMark is at the start of files of some editors.
const byteOrderMark = "\ufeff"

// decode converts the content of a file to its value: JSON on one line. limit
// is its maximum size, since a small YAML can be a large JSON.
func decode(kind format, text []byte, limit int64) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, &placedError{1, 1, "the file is empty"}
	}
	if at := invalidUTF8(text); at >= 0 {
		return nil, placed(text, at, "this is not UTF-8")
	}
	if kind == yamlFormat {
		return fromYAML(text, limit)
	}
	return fromJSON(text)
}

// fromJSON returns the text as it is, except for line breaks between tokens. A key may not
// occur twice, as in YAML: readers of the value differ on which one counts.
func fromJSON(text []byte) ([]byte, error) {
	if value, ok := stream.CompactJSON(text); ok {
		if err := repeatedKey(text); err != nil {
			return nil, err
		}
		return value, nil
	}
	err := json.Unmarshal(text, new(json.RawMessage))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return nil, placed(text, 0, fmt.Sprintf("not JSON: %v", err))
	}
	// The offset is after the byte that was wrong, or is the end of the text.
	at := int(syntax.Offset) - 1
	if strings.Contains(syntax.Error(), "unexpected end") {
		at = len(text)
	}
	return nil, placed(text, at, "not JSON: "+syntax.Error())
}

// repeatedKey returns an error where a key of valid JSON occurs twice in its object.
func repeatedKey(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var open []*object // that of each collection the decoder is in; nil for arrays
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil // the end
		}
		var in *object
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		switch key, isText := token.(string); {
		case token == json.Delim('}'), token == json.Delim(']'):
			open = open[:len(open)-1]
			continue
		case in == nil:
		case !in.valueNext && isText:
			in.valueNext = true
			end := int(decoder.InputOffset())
			if first, repeated := in.keys[key]; repeated {
				return placed(text, startOfText(text, end), fmt.Sprintf("the key %q stands here a second time; it is on line %d already",
					key, placed(text, first, "").line))
			}
			in.keys[key] = end
			continue
		default:
			in.valueNext = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, &object{keys: map[string]int{}})
		case json.Delim('['):
			open = append(open, nil)
		}
	}
}

// object is what is known of an object that is being read.
type object struct {
	keys      map[string]int // with the offsets of their ends
	valueNext bool
}

// startOfText returns the offset at which a JSON string begins, from that of its end.
func startOfText(text []byte, end int) int {
	for at := end - 2; at > 0; at-- {
		if text[at] != '"' {
			continue
		}
		before := text[:at]
		if escapes := len(before) - len(bytes.TrimRight(before, `\`)); escapes%2 == 0 {
			return at
		}
	}
	return 0
}

// placed is an error at an offset of the text.
func placed(text []byte, offset int, message string) *placedError {
	before := text[:min(max(offset, 0), len(text))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return &placedError{
		line:    1 + bytes.Count(before, []byte("\n")),
		column:  1 + utf8.RuneCount(before[lineStart:]),
		message: message,
	}
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}
