package problem

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that was recovered. As an answer it is a 500 that reveals
// nothing.
type PanicError struct {
	value any
	stack []byte
}

// Panicked returns the error of a recovered panic. It must be called by the deferred
// function that recovered it, for the stack.
func Panicked(value any) *PanicError { return &PanicError{value: value, stack: debug.Stack()} }

// Error implements error. The text has the stack of the panic.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// Recovered calls f and returns its panic, if there is one, as a PanicError.
func Recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = Panicked(v)
		}
	}()
	return f()
}
