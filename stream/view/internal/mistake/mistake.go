// Package mistake describes what is wrong with a text, where, and what would be right.
package mistake

// Error is a mistake in a text.
type Error struct {
	// Offset is where the mistake begins, in bytes.
	Offset int
	// Problem says what is wrong; Advice what would be right, or is empty.
	Problem, Advice string
}

// Error returns the problem and the advice.
func (e *Error) Error() string {
	if e.Advice == "" {
		return e.Problem
	}
	return e.Problem + ": " + e.Advice
}
