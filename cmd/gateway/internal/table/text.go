package table

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// printable replaces what a terminal would obey, or would not show, by a dot.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u00a0' || r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r):
			return r
		default:
			return '·'
		}
	}, strings.ToValidUTF8(s, "·"))
}

// columns is how many terminal columns a text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// fit returns s in exactly n columns: filled up with spaces, or cut with an
// ellipsis.
func fit(s string, n int) string {
	have := columns(s)
	if have <= n {
		return s + strings.Repeat(" ", n-have)
	}
	return cut(s, n)
}

// cut returns s in at most n columns and ends with an ellipsis if something is
// missing. A wide character that does not fit leaves a space.
func cut(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	var b strings.Builder
	left := n - 1
	for _, r := range s {
		w := runeColumns(r)
		if w > left {
			break
		}
		left -= w
		b.WriteRune(r)
	}
	return b.String() + "…" + strings.Repeat(" ", left)
}

// Line returns text as one line that is not wider than width.
func Line(text string, width int) string { return cut(printable(text), width) }
