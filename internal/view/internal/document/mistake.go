package document

// Mistake is a mistake in a text.
type Mistake struct {
	// Offset is where the mistake begins, in bytes.
	Offset int
	// Problem says what is wrong; Advice what would be right, or is empty.
	Problem, Advice string
}

// Error returns the problem and the advice.
func (e *Mistake) Error() string {
	if e.Advice == "" {
		return e.Problem
	}
	return e.Problem + ": " + e.Advice
}
