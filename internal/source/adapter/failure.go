package adapter

// Failure is an error with another text.
type Failure struct {
	cause error
	text  string
}

// NewFailure returns an error with a text whose cause is another error.
func NewFailure(cause error, text string) *Failure { return &Failure{cause, text} }

// Error returns the text.
func (e *Failure) Error() string { return e.text }

// Unwrap returns the cause.
func (e *Failure) Unwrap() error { return e.cause }
