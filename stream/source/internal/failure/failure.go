// Package failure gives an error another text, which names the upstream and a remedy,
// and keeps the error itself for errors.Is and errors.As.
package failure

// Error is an error with another text.
type Error struct {
	cause error
	text  string
}

// New returns an error with a text whose cause is another error.
func New(cause error, text string) *Error { return &Error{cause, text} }

// Error returns the text.
func (e *Error) Error() string { return e.text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }
