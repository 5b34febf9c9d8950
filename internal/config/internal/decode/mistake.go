package decode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one error in a configuration file, or, without a line, on the command
// line.
type Mistake struct {
	File         string
	Line, Column int // from 1
	Message      string
}

// Error returns file:line:column: message.
func (e *Mistake) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Mistakes is all errors of a configuration file, in the order of the file;
// never empty.
type Mistakes []*Mistake

// Error returns one line for each error.
func (es Mistakes) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the errors in the order of the file.
func (es Mistakes) Sorted() Mistakes {
	slices.SortStableFunc(es, func(a, b *Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return es
}
