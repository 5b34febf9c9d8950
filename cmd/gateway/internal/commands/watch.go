package commands

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/changes"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

type watchOptions struct {
	clientOptions
	until   string
	maxRate string
	first   []string
	waitFor string
	timeout time.Duration

	changesOnly bool
	quiet       bool
	hook        changes.HookOptions
	output      terminal.Flag

	format    terminal.Format    // that output names
	condition *changes.Condition // of waitFor; nil: none
}

const endOfSnapshot = "end_of_snapshot"

const watchExample = `  watchtide watch processes
  watchtide watch notes | jq -c 'select(.type == "upsert")'
  watchtide watch notes --until end_of_snapshot
  watchtide watch notes --changes-only
  watchtide watch notes --changes-only -o jsonpath='{.type} {.key}'
  watchtide watch backends --exec ./reload.sh --state /var/lib/reload.state
  watchtide watch services --labels 'app in (web, shop)' --fields state,node
  watchtide watch services --filter 'value.state != "passing"'
  watchtide watch services --order=-cpu_percent --limit=20
  watchtide watch services --first web,shop | jq -c 'select(.type == "upsert")'
  watchtide watch services --wait-for 'count > 3' --timeout 60s
  watchtide watch services --wait-for 'resources.exists(k, resources[k].state == "ready")'
  watchtide watch services --wait-for '"web" in resources && resources["web"].replicas >= 2'`

func (a *app) watchCommand() *cobra.Command {
	var o watchOptions
	c := &cobra.Command{
		Use:   "watch WATCH...",
		Short: "Follow watches",
		Long: `Follow watches. When a connection is lost, the next one continues where it ended. A
gateway that cannot tell what has changed since then is asked for the digest of what it
has, and what differs is shown as upserts and deletes. The table says when what it
shows was last verified so.

On a terminal, the output is a table that changes with the resources. In a pipe it is
NDJSON: each event on a line of its own. -o yaml makes each event a YAML document, and
-o jsonpath prints what a template makes of it, or nothing if the event lacks what the
template names. Connections that are lost and opened are logged.

--wait-for ends the command as soon as an expression in CEL (https://cel.dev) is true
for all watches at the same time. It is evaluated for one watch at a time, and only on
states that the upstream had, over

  watch      string            name of the watch
  count      int               number of its resources
  resources  map(string, dyn)  its resources: key → value

An expression that names something that is not there is not true.

--changes-only prints only upserts and deletes: no state at the beginning, and after a
reset only what differs.

` + changes.HookHelp + `

` + viewHelp + `

` + connect.WindowHelp + `

--wait-for sees only the resources that these flags select.

` + connect.Help + "\n\n" + exitHelp,
		Example:           watchExample,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: o.completeWatches,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.checkWatch(&o, args); err != nil {
				return err
			}
			return a.watch(cmd.Context(), o, args)
		},
	}
	o.register(c)
	connect.RegisterWindow(c, &o.view)
	c.Flags().StringVar(&o.until, "until", "", "end_of_snapshot: end when each watch is complete")
	c.Flags().StringVar(&o.maxRate, "max-rate", "", "have changes at most so often, of each resource the newest: a `RATE` such as 2/s or 10/m")
	connect.RegisterFirst(c, &o.first)
	c.Flags().StringVar(&o.waitFor, "wait-for", "", "end when the `CEL` expression is true")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "end after this `TIME`, such as 60s, with exit code 3")
	c.Flags().BoolVar(&o.changesOnly, "changes-only", false, "print changes only, not the state that they begin with")
	c.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print no events, and log errors only")
	o.hook.Register(c.Flags())
	o.output.Register(c, terminal.TableFormat, terminal.NDJSON, terminal.YAML, terminal.JSONPath)
	_ = c.MarkFlagFilename("state")
	_ = c.RegisterFlagCompletionFunc("until", cobra.FixedCompletions([]string{endOfSnapshot}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// checkWatch validates the flags.
func (a *app) checkWatch(o *watchOptions, watches []string) error {
	if err := o.check(watches); err != nil {
		return err
	}
	if err := a.checkOutput(o); err != nil {
		return err
	}
	return a.checkView(o.view)
}

// check validates what cobra does not, and compiles the expression.
func (o *watchOptions) check(watches []string) error {
	if o.until != "" && o.until != endOfSnapshot {
		return usageError("--until %q: want %s", o.until, endOfSnapshot)
	}
	if o.timeout < 0 {
		return usageError("--timeout %v: want more than 0", o.timeout)
	}
	for i, w := range watches {
		if slices.Contains(watches[:i], w) {
			return usageError("watch %q is named twice", w)
		}
	}
	if len(o.first) > 0 && o.changesOnly {
		return usageError("--first is for the state at the beginning, which --changes-only leaves out: want one of them")
	}
	if err := o.hook.Check(); err != nil {
		return codedError{exitUsage, err}
	}
	if o.hook.Given() && o.waitFor != "" {
		return usageError("--wait-for needs the whole state, and --exec continues where it has ended: want one of them")
	}
	if o.waitFor == "" {
		return nil
	}
	c, err := changes.Compile(o.waitFor)
	if err != nil {
		return usageError("--wait-for: %w", err)
	}
	o.condition = c
	return nil
}

// checkOutput reads --output.
func (a *app) checkOutput(o *watchOptions) (err error) {
	if o.format, err = o.output.Format(""); err != nil {
		return usageError("%w", err)
	}
	switch {
	case o.format.Name == "":
		return nil
	case o.quiet || o.hook.Given():
		return usageError("--output is for events that are printed: want it without --quiet and --exec")
	case o.format.Name == terminal.TableFormat && (a.size == nil || o.changesOnly):
		return usageError("--output table: want a terminal, and no --changes-only")
	}
	return nil
}

// onScreen reports whether the watches are shown as tables that change.
func (a *app) onScreen(o watchOptions) bool {
	form := o.format.Name
	return a.size != nil && !o.hook.Given() && !o.quiet && !o.changesOnly && (form == "" || form == terminal.TableFormat)
}

// errTimeout is why a context ended: --timeout has passed.
var errTimeout = errors.New("--timeout is over")

func (a *app) watch(ctx context.Context, o watchOptions, names []string) error {
	s, err := o.connect()
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	ctx, done := a.whileRead(ctx)
	defer done()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, errTimeout)
		defer cancel()
	}
	f := newFollowing(ctx, names, o.condition, a.onScreen(o))
	f.sortKey = connect.SortKey(o.view)
	show, from, err := a.viewer(ctx, o, f)
	if err != nil {
		return err
	}
	options := []client.WatchOption{client.And(names[1:]...), o.view, client.From(from)}
	if o.maxRate != "" {
		options = append(options, client.MaxRate(o.maxRate))
	}
	if len(o.first) > 0 {
		options = append(options, client.First(o.first...))
	}
	if o.until != "" {
		options = append(options, client.UntilEndOfSnapshot())
	} else {
		options = append(options, client.Verifying())
	}
	closed, err := f.all(s.Watch(ctx, names[0], options...), show)
	return errors.Join(closed, f.verdict(a.refused(o.clientOptions, err)))
}

// all shows the events of a loop until it ends, and returns the error of the viewer's end and why it ended.
func (f *following) all(events iter.Seq2[client.Event, error], show viewer) (closed, err error) {
	for e, ended := range events {
		if err = ended; err == nil {
			err = f.show(e, show)
		}
		if err != nil {
			break
		}
	}
	if closed = show.Close(); errors.Is(err, closed) {
		closed = nil // it is why the watch has ended
	}
	return closed, err
}

// show applies an event, and then shows it.
func (f *following) show(e client.Event, to viewer) error {
	err := f.event(e) // first, so that the newest state is shown
	if e.State == client.Offline {
		to.Lost(e.Err, e.Wait)
		return err
	}
	return errors.Join(err, to.Event(e))
}

// verdict returns the error that describes how a watch ended.
func (f *following) verdict(err error) error {
	switch {
	case errors.Is(err, errMet):
		return nil
	case errors.Is(err, errTimeout):
		return codedError{exitTimeout, fmt.Errorf("%w%s", errTimeout, f.why())}
	case err == nil && f.condition != nil:
		return codedError{exitUnmet, fmt.Errorf("%s was reached%s", endOfSnapshot, f.why())}
	}
	return err
}
