package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

type countOptions struct {
	gateway  *connect.Flags
	counting client.Counting
	follow   bool
	output   terminal.Flag
}

func (a *app) countCommand() *cobra.Command {
	o := countOptions{gateway: connect.New(userAgent())}
	c := &cobra.Command{
		Use:   "count WATCH",
		Short: "Count the resources of a watch by the values of fields",
		Long: `Count the resources of a watch by the values of up to four fields, and add another one.
The key of a group is the value of its field, or an array of the values.

On a terminal, the output is a table; in a pipe it is JSON, a group to a line. With -o json,
yaml or jsonpath all groups are one object. --follow goes on with every change, as watchtide
watch does.

` + connect.Help + "\n\n" + exitHelp,
		Example: `  watchtide count services --by state
  watchtide count services --by state,node.zone --sum cpu_percent
  watchtide count services --by state --filter 'value.replicas > 1' --follow`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.gateway.CompleteWatches,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.count(cmd.Context(), o, args[0]) },
	}
	o.gateway.Register(c)
	c.Flags().StringArrayVar(&o.counting.By, "by", nil, "count by the values at these `PATHS`, with commas between them")
	c.Flags().StringVar(&o.counting.Sum, "sum", "", "add the numbers at this `PATH`, and show the least and the greatest")
	c.Flags().StringVar(&o.counting.Prefix, "prefix", "", "only keys that begin with `TEXT`")
	connect.RegisterKeys(c, &o.counting.Keys)
	c.Flags().StringVar(&o.counting.Labels, "labels", "", "only resources whose labels match the `SELECTOR`, as with kubectl -l")
	c.Flags().StringVar(&o.counting.Filter, "filter", "", "only resources for which the `CEL` expression is true")
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with every change")
	o.output.Register(c, terminal.TableFormat, terminal.JSON, terminal.NDJSON, terminal.YAML, terminal.JSONPath)
	for _, name := range []string{"by", "sum", "prefix", "labels", "filter"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

func (a *app) count(ctx context.Context, o countOptions, watch string) error {
	if len(o.counting.By) == 0 {
		return usageError("no field is named: want --by PATHS")
	}
	counted := o.counting.View()
	if err := a.checkView(counted); err != nil {
		return err
	}
	s, err := o.gateway.Connect()
	if err != nil {
		return codedError{exitUsage, err}
	}
	defer s.Close()
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	if o.follow {
		err = a.followCounts(ctx, o, s, watch)
	} else {
		err = a.listCounts(ctx, o, s, watch)
	}
	return connect.NarrowingRefused(o.gateway.Refused(err), counted, a.terminal())
}

// listCounts prints the groups as they are.
func (a *app) listCounts(ctx context.Context, o countOptions, s *client.Client, watch string) error {
	form := terminal.NDJSON
	if a.size != nil {
		form = terminal.TableFormat
	}
	format, err := o.output.Format(form)
	if err != nil {
		return usageError("%w", err)
	}
	groups, err := s.Counts(ctx, watch, o.counting)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return a.console().Print(groups, format)
}

// followCounts prints the groups and their changes until a signal comes.
func (a *app) followCounts(ctx context.Context, o countOptions, s *client.Client, watch string) error {
	format, err := o.output.Format("")
	if err != nil {
		return usageError("%w", err)
	}
	if format.Name == terminal.JSON || format.Name == terminal.TableFormat && a.size == nil {
		return usageError("--output %s: want ndjson, yaml or jsonpath with --follow, or table on a terminal", format.Name)
	}
	ctx, done := a.whileRead(ctx)
	defer done()
	as := watchOptions{format: format}
	f := newFollowing(ctx, []string{watch}, nil, a.onScreen(as))
	show, _, err := a.viewer(ctx, as, f)
	if err != nil {
		return err
	}
	closed, err := f.all(s.Watch(ctx, watch, o.counting), show)
	return errors.Join(closed, f.verdict(err))
}
