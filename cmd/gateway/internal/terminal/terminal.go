// Package terminal shows what a gateway sends on a terminal: in the form that --output names, or as
// a table of the resources of a watch, one line each, with the key and the most common fields of the
// value, as many as fit.
//
// The content of a resource cannot move the cursor or change a color: unprintable characters are shown
// as a dot. As JSON or YAML, no digit of a number is lost, and no member is moved, except by a template.
package terminal

import (
	"strings"
)

// Terminal is what is known of the terminals of a process. Static.
type Terminal struct {
	// Errors reports whether standard error is a terminal.
	Errors bool
	// Size returns the size of the terminal at standard output; nil: it is not one.
	Size func() (width, height int, err error)
}

// Excerpt shows a place in a text, for a terminal: below the message, the line with the
// place, and a caret under it. Empty: there is no terminal, or the line does not fit.
func (t Terminal) Excerpt(text string, offset int) string {
	if !t.Errors || offset < 0 || offset > len(text) {
		return ""
	}
	begin := strings.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := strings.Cut(text[begin:], "\n")
	before := string(Escaped([]byte(text[begin:offset])))
	shown := string(Escaped([]byte(line)))
	if len(shown) == 0 || Width(shown) > t.width()-len(indent) {
		return ""
	}
	return "\n" + indent + shown + "\n" + indent + blank(before) + "^"
}

const indent = "  "

// width is that of the terminal, as far as it is known.
func (t Terminal) width() int {
	if t.Size != nil {
		if width, _, err := t.Size(); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// blank returns white space as wide as a text, which has the same tabs.
func blank(text string) string {
	var out strings.Builder
	for i, part := range strings.Split(text, "\t") {
		if i > 0 {
			out.WriteByte('\t')
		}
		out.WriteString(strings.Repeat(" ", Width(part)))
	}
	return out.String()
}
