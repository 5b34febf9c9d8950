package commands

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/bearer"
	"github.com/watchtide/watchtide/cmd/gateway/internal/table"
)

func (a *app) getCommand() *cobra.Command {
	var o clientOptions
	c := &cobra.Command{
		Use:   "get WATCH [KEY]",
		Short: "Print the resources of a watch, or one of them",
		Long: `Print the resources of a watch, all as they were at one revision, or the one
with the key.

On a terminal it is a table, and one resource is indented; in a pipe it is JSON,
a resource to a line: {"key":…,"revision":…,"value":…}.

` + viewHelp + "\n\n" + bearer.Help + "\n\n" + exitHelp,
		Example: `  watchtide get notes
  watchtide get notes greeting | jq .value
  watchtide get services --labels 'app in (web, shop)' --fields state,node
  watchtide get services --filter 'value.state != "passing"'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.get(cmd.Context(), o, args)
		},
	}
	o.register(c)
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return o.completeWatches(cmd, args, begun)
	}
	return c
}

func (a *app) get(ctx context.Context, o clientOptions, args []string) error {
	if len(args) == 2 && o.view.Prefix != "" {
		return usageError("--prefix is for all resources of a watch, not for the one with a key")
	}
	if err := a.checkView(o.view); err != nil {
		return err
	}
	s, err := o.connect()
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	if len(args) == 2 {
		line, err := s.Line(ctx, args[0], args[1], o.view)
		if err != nil {
			return because(ctx, a.refused(o, err))
		}
		return a.printOne(line)
	}
	state, err := s.State(ctx, args[0], o.view)
	switch {
	case err != nil:
		return because(ctx, a.refused(o, err))
	case a.size == nil:
		return a.printLines(state.Resources)
	}
	return a.printTable(state.Resources)
}

// because returns the cause of ctx, if err is due to its end.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (a *app) printOne(line json.RawMessage) error {
	if a.size == nil {
		return a.printLines([]json.RawMessage{line})
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, line, "", "  "); err != nil {
		return err
	}
	return a.printLines([]json.RawMessage{indented.Bytes()})
}

func (a *app) printLines(lines []json.RawMessage) error {
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	for _, line := range lines {
		if a.size != nil {
			line = escaped(line)
		}
		out.Write(line) // an error comes back from Flush
		out.WriteByte('\n')
	}
	return out.Flush()
}

func (a *app) printTable(lines []json.RawMessage) error {
	width, _, err := a.size()
	if err != nil || width <= 0 {
		width = math.MaxInt32
	}
	all := make([]client.Resource, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &all[i]); err != nil {
			return err
		}
	}
	slices.SortFunc(all, func(x, y client.Resource) int { return client.CompareIDs(x.ID(), y.ID()) })
	rows := make([]table.Row, len(all))
	for i, r := range all {
		rows[i] = table.Row{Key: r.Key, Value: r.Value}
	}
	for _, line := range table.New().Draw(rows, width) {
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return err
		}
	}
	return nil
}
