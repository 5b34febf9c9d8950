package access

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
)

// visible writes lines of JSON without any character that a terminal would interpret instead
// of showing it. JSON itself escapes only the control characters of ASCII.
type visible struct{ to *bytes.Buffer }

// Write writes a line. It never fails.
func (v visible) Write(line []byte) (int, error) {
	for _, r := range string(line) {
		if r == '\n' || unicode.IsGraphic(r) {
			v.to.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(v.to, `\u%04x`, unit)
		}
	}
	return len(line), nil
}
