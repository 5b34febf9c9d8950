package main

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped returns a text for a terminal: what it would obey instead of showing it
// (control characters of ASCII and C1, marks that turn the direction of a line) is
// written as JSON writes it, \u001b, so that JSON stays the same JSON. Lines and
// tabs stay what they are; a carriage return is a space.
func escaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || r == '\t' || r == utf8.RuneError && size == 1:
			out = utf8.AppendRune(out, r) // a byte that is no UTF-8 is shown as what stands for such
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
