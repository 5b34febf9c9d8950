package terminal

import (
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// printable replaces characters that a terminal would interpret, or would not
// show, with a dot.
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

// terminal measures text as a terminal shows it, whatever the locale of this process.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns how many terminal columns a text takes.
func Width(s string) int { return terminal.StringWidth(s) }

// fit returns s in exactly n columns: filled up with spaces, or cut with an
// ellipsis.
func fit(s string, n int) string { return terminal.FillRight(cut(s, n), n) }

// cut returns s in at most n columns, with an ellipsis if something is missing.
func cut(s string, n int) string {
	if n < 1 {
		return ""
	}
	return terminal.Truncate(s, n, "…")
}

// Line returns text as one line that is not wider than width.
func Line(text string, width int) string { return cut(printable(text), width) }
