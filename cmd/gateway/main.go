// Command gateway serves watches, follows them and reads them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := process{stdout: os.Stdout, stderr: os.Stderr, signals: signals, exit: os.Exit, limitMemory: limitMemory, logGRPC: logGRPC}
	p.logTerminal = term.IsTerminal(int(os.Stderr.Fd()))
	p.readerGone = func() bool { return readerGone(os.Stdout) }
	if out := int(os.Stdout.Fd()); term.IsTerminal(out) {
		p.size = func() (width, height int, err error) { return term.GetSize(out) }
	}
	os.Exit(run(context.Background(), p, os.Args[1:]))
}
