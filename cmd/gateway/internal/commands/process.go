package commands

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/watchtide/watchtide/gateway"
)

// process is a command's access to the process in which it runs.
//
// Static after construction.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// logTerminal reports whether stderr is a terminal.
	logTerminal bool
	// size returns the size of the terminal at stdout; nil: it is not a terminal.
	size func() (width, height int, err error)
	// readerGone reports whether stdout has lost its reader; nil: unknown.
	readerGone func() bool
	// signals are those that ask the process to end.
	signals <-chan os.Signal
	// limitMemory sets the memory limit of the runtime; nil: it is left alone.
	limitMemory func(*slog.Logger)
	// paceCollector sets the pace of the garbage collector by what watches hold, until the
	// context ends; nil: it is left alone.
	paceCollector func(ctx context.Context, held func() int64)
	// notesFile names the file that keeps the notes of a gateway without a configuration; nil: they are
	// in memory.
	notesFile func() (string, error)
	// logGRPC redirects gRPC's messages to a logger, for the whole process; nil:
	// they are left alone.
	logGRPC func(*slog.Logger)
	// exit ends the process immediately.
	exit func(code int)
}

// interrupted is why a context ended: a signal came.
type interrupted struct{ signal os.Signal }

// Is reports that an interrupt, which a person sends, needs no delay: no load
// balancer has to notice.
func (i interrupted) Is(target error) bool {
	return target == gateway.ErrNoDelay && i.signal == os.Interrupt
}

func (i interrupted) Error() string { return fmt.Sprintf("interrupted by a signal: %v", i.signal) }

// code is the shell's exit code for the signal: 130 for an interrupt, 143 for
// SIGTERM.
func (i interrupted) code() int {
	if n, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitError
}

// untilSignal returns a context that ends with the first signal; a second one ends
// the process immediately. stop releases the signals and waits for the goroutine.
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

// whileRead returns a context that ends when stdout has lost its reader, as if
// by the signal that a write would cause: otherwise a quiet watch in
//
//	watchtide watch notes | head -1
//
// would run forever. stop waits for its goroutines.
func (p process) whileRead(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	if p.readerGone != nil {
		looking.Go(func() {
			if p.awaitReaderGone(ctx) {
				cancel(interrupted{syscall.SIGPIPE})
			}
		})
	}
	return ctx, func() {
		cancel(nil)
		looking.Wait()
	}
}

// awaitReaderGone checks twice a second; false: ctx has ended.
func (p process) awaitReaderGone(ctx context.Context) bool {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for !p.readerGone() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
