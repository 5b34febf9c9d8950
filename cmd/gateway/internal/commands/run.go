package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/doctor"
	"github.com/watchtide/watchtide/cmd/gateway/internal/resources"
	"github.com/watchtide/watchtide/cmd/gateway/internal/setup"
	"github.com/watchtide/watchtide/cmd/gateway/internal/telemetry"
	"github.com/watchtide/watchtide/internal/config"
)

// The exit codes, as in the help. A command that was ended by a signal exits with
// 128 and the number of the signal, except for serve, for which that is the
// normal end.
const (
	exitOK      = 0
	exitError   = 1 // something failed
	exitUsage   = 2 // the command line is wrong
	exitTimeout = 3 // --timeout is over
	exitUnmet   = 4 // --until was reached, and --wait-for was not true
	exitOther   = 5 // the resource is not as --if-revision or --if-absent wants it
)

const exitHelp = `Exit codes:
  0    done
  1    something failed, for instance a watch that does not exist
  2    the command line is wrong
  3    --timeout is over
  4    --until was reached, and what --wait-for waits for was not so
  5    nothing was written: the resource is not as --if-revision or --if-absent wants it
  130  interrupted; 143 after SIGTERM`

// codedError is an error that has an exit code of its own.
type codedError struct {
	code int
	err  error
}

func (e codedError) Error() string { return e.err.Error() }
func (e codedError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return codedError{exitUsage, fmt.Errorf(format, args...)}
}

// app is one run of the command line. Owned by run.
type app struct {
	process
	logging  telemetry.LogOptions
	inserted *inserted // in the configurations of the process
	unhidden io.Writer // standard error, for what has no text of a configuration
	began    bool      // a command was found and its command line is right
}

// run runs a command line, without the name of the program, and returns the
// exit code.
func run(ctx context.Context, p process, args []string) int {
	a := &app{process: p, inserted: &inserted{}}
	a.unhidden, p.stderr = p.stderr, a.inserted.writer(p.stderr)
	a.stderr = p.stderr
	root := a.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := a.exitCode(err)
	if errors.As(err, new(interrupted)) {
		return code // the sender of the signal knows
	}
	if errors.As(err, new(config.Errors)) {
		fmt.Fprintf(p.stderr, "%s\n", escaped([]byte(err.Error()))) // each line starts with its place in the file
		return code
	}
	fmt.Fprintf(p.stderr, "watchtide: %s\n", escaped([]byte(err.Error())))
	if code == exitUsage {
		fmt.Fprintln(p.stderr, "Try --help.")
	}
	return code
}

// diagnosis returns what the command doctor needs of this process.
func (a *app) diagnosis() doctor.Process {
	return doctor.Process{
		Stdout: a.stdout, Stderr: a.stderr, Terminal: a.logTerminal, Escape: escaped, UntilSignal: a.untilSignal, Usage: usageError,
		TimedOut: func(err error) error { return codedError{exitTimeout, err} },
	}
}

func (a *app) exitCode(err error) int {
	var coded codedError
	var signal interrupted
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &signal):
		return signal.code()
	case errors.As(err, new(connect.NarrowingMistake)):
		return exitUsage
	case errors.Is(err, client.ErrConflict):
		return exitOther
	case !a.began:
		return exitUsage // cobra rejected the command line
	}
	return exitError
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "watchtide",
		Short:         "Serve, follow and read watches",
		Long:          "Serve, follow and read watches: named collections with a snapshot, then every change.",
		Version:       versionLine(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.began = true
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	a.logging.Flags(root)
	root.AddCommand(resources.Commands(a.console())...)
	root.AddCommand(connect.ContextsCommand(a.stdout, a.terminal(), usageError))
	root.AddCommand(a.serveCommand(), a.watchCommand(), a.countCommand(), doctor.Command(a.diagnosis()), a.configCommand(), a.storeCommand(), newTokenCommand(a.stdout, usageError), newKeyCommand(a.stdout, usageError), a.versionCommand(), manualCommand(buildVersion()))
	root.AddCommand(setup.Command(setup.Tools{Stdout: a.stdout, Stderr: a.stderr, Check: a.checkText}))
	return root
}

// logger returns the logger of the process.
func (a *app) logger() *slog.Logger { return a.logging.Logger(a.stderr, a.logTerminal) }

// announcer is a logger for what is logged at any level.
func (a *app) announcer() *slog.Logger {
	o := a.logging
	o.Level = min(o.Level, slog.LevelInfo)
	return o.Logger(a.stderr, a.logTerminal)
}
