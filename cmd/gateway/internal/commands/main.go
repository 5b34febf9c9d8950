// Package commands is the command line: what each command does, and the one place that
// knows every source.
package commands

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/watchtide/watchtide/cmd/gateway/internal/telemetry"
)

// Main runs the command that the arguments of the process name, and returns its exit
// code. version and commit are those of a release; empty: it is not one.
func Main(version, commit string) int {
	linkedVersion, linkedCommit = version, commit
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, signals: signals, exit: os.Exit, limitMemory: limitMemory, paceCollector: paceCollector, logGRPC: telemetry.LogFromGRPC, notesFile: notesFile}
	p.logTerminal = term.IsTerminal(int(os.Stderr.Fd()))
	p.readerGone = func() bool { return readerGone(os.Stdout) }
	if out := int(os.Stdout.Fd()); term.IsTerminal(out) {
		p.size = func() (width, height int, err error) { return term.GetSize(out) }
	}
	return run(context.Background(), p, os.Args[1:])
}
