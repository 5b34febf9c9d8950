package terminal

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escaped returns a text for a terminal: anything it would interpret instead of
// showing (control characters of ASCII and C1, marks that change the direction of
// a line) is escaped as in JSON, \u001b, so that JSON keeps its meaning. Line
// breaks and tabs are unchanged; a carriage return becomes a space.
func Escaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || r == '\t' || r == utf8.RuneError && size == 1:
			out = utf8.AppendRune(out, r) // a byte that is not UTF-8 is shown as the replacement character
		case r == '\r':
			out = append(out, ' ')
		case !unicode.IsGraphic(r):
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out
}
