package adapter

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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

// TooLarge reports whether a call has ended because a message is larger than the maximum.
// gRPC refuses it by its length, and reads no more of it.
func TooLarge(err error) bool {
	st, ok := status.FromError(err)
	return ok && st.Code() == codes.ResourceExhausted && strings.Contains(st.Message(), "larger than max")
}
