package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
)

// process is what a command has of the process in which it runs.
//
// Static after construction.
type process struct {
	stdout, stderr io.Writer
	// logTerminal says that a person reads stderr.
	logTerminal bool
	// size returns the size of the terminal that stdout is; nil: it is none.
	size func() (width, height int, err error)
	// signals are those that ask the process to end.
	signals <-chan os.Signal
	// exit ends the process at once.
	exit func(code int)
}

// interrupted is why a context ended: a signal came.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return fmt.Sprintf("interrupted by a signal: %v", i.signal) }

// code is what shells make of the signal: 130 for an interrupt, 143 for SIGTERM.
func (i interrupted) code() int {
	if n, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitError
}

// untilSignal returns a context that ends with the first signal; a second one
// ends the process at once. stop gives the signals back and waits for it.
func (p process) untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case s := <-p.signals:
				if !first {
					p.exit(interrupted{s}.code())
				}
				cancel(interrupted{s})
			case <-stopped:
				return
			}
		}
	}()
	return ctx, func() {
		close(stopped)
		<-done
		cancel(nil)
	}
}
