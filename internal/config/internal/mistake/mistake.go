package mistake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one error in a configuration file, or, without a line, on the command
// line.
type Error struct {
	File         string
	Line, Column int // from 1
	Message      string
}

// Error returns file:line:column: message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors is all errors of a configuration file, in the order of the file;
// never empty.
type Errors []*Error

// Error returns one line for each error.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the errors in the order of the file.
func (es Errors) Sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return es
}
