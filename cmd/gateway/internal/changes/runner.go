package changes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/watchtide/watchtide/client"
)

// HookOptions are what the flags say.
type HookOptions struct {
	line    string
	state   string
	initial bool
	retries int
}

// Register adds the flags.
func (o *HookOptions) Register(f *pflag.FlagSet) {
	f.StringVar(&o.line, "exec", "", "run a `COMMAND` of the shell once for each change, with the event on its standard input")
	f.StringVar(&o.state, "state", "", "the `FILE` that remembers what --exec has been run for; unless set, one below ~/.local/state/watchtide")
	f.BoolVar(&o.initial, "exec-initial", false, "run --exec for each resource that is there at the very first start too")
	f.IntVar(&o.retries, "exec-retries", -1, "end after a `NUMBER` of further attempts at a change for which --exec fails; -1: go on until it succeeds")
}

// HookHelp describes the flags.
const HookHelp = `--exec runs a command of the shell (sh -c) once for each upsert and delete, one after
the other, in order. The event is a line of JSON on its standard input, and

  WATCHTIDE_TYPE          upsert or delete
  WATCHTIDE_WATCH         name of the watch
  WATCHTIDE_KEY           key of the resource
  WATCHTIDE_KEY_ENCODING  base64, if the key is; else empty
  WATCHTIDE_REVISION      revision of the change

are in its environment. At the first start, it is not run for resources that are already
there. The file that --state names records the changes for which it has been run. So after
a restart or a reset it is run only for what differs, and for each change at least once.
If it fails, it is run again for the same change, after 1 s, then 2 s, and so on up to a
minute. At SIGTERM it has 10 s to finish.`

// Given reports whether there is a command.
func (o *HookOptions) Given() bool { return o.line != "" }

// Check finds flags that are useless without a command.
func (o *HookOptions) Check() error {
	switch {
	case !o.Given() && (o.state != "" || o.initial || o.retries != -1):
		return errors.New("--state, --exec-initial and --exec-retries are for --exec")
	case o.retries < -1:
		return fmt.Errorf("--exec-retries %d: want a number of attempts, or -1", o.retries)
	}
	return nil
}

// Runner runs a command for each change of what is followed.
//
// Owned by the goroutine that follows.
type Runner struct {
	ctx     context.Context
	command *HookCommand
	state   *State
	tracker *Tracker
	logger  *slog.Logger
}

// Start opens the state for what is followed at a server, and returns its runner. When ctx has
// ended, no command is started.
func (o *HookOptions) Start(ctx context.Context, server string, s Subject, stdout, stderr io.Writer, logger *slog.Logger) (*Runner, error) {
	file := o.state
	if file == "" {
		var err error
		if file, err = DefaultName(server, s, o.line); err != nil {
			return nil, err
		}
	}
	state, err := OpenState(file, s, o.initial)
	if err != nil {
		return nil, err
	}
	r := &Runner{
		ctx: ctx, state: state, logger: logger,
		command: &HookCommand{Line: o.line, Retries: o.retries, Stdout: stdout, Stderr: stderr, Logger: logger},
	}
	r.tracker = NewTracker(state.Known(), r)
	logger.Info("a command is run for each change", "state", file, "continues", r.Position() != "")
	return r, nil
}

// Position returns the position to follow from.
func (r *Runner) Position() string { return r.state.Known().Position() }

// Event handles an event of the stream.
func (r *Runner) Event(e client.Event) error { return r.tracker.Event(e) }

// Lost handles the loss of a connection.
func (r *Runner) Lost(reason error, wait time.Duration) {
	r.logger.Warn("disconnected", "reason", reason, "retry_in", wait)
}

// Close releases the state.
func (r *Runner) Close() error { return r.state.Close() }

// Change implements [changes.Handler].
func (r *Runner) Change(e client.Event) error { return r.command.Run(r.ctx, e) }

// Record implements [changes.Handler].
func (r *Runner) Record(record Record) error { return r.state.Record(record) }
