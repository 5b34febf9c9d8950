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

// fromJSON returns the text as it is, except for line breaks between tokens.
func fromJSON(text []byte) ([]byte, error) {
	if value, ok := stream.CompactJSON(text); ok {
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
