package resources

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

func (c Console) get() *cobra.Command {
	f := connect.New(c.Agent)
	var o terminal.Flag
	var v client.View
	get := &cobra.Command{
		Use:   "get WATCH [KEY]",
		Short: "Print the resources of a watch, or one of them",
		Long: `Print the resources of a watch, all as they were at one revision, or the one
with the key.

On a terminal it is a table, and one resource is indented; in a pipe it is JSON,
a resource to a line: {"key":…,"revision":…,"value":…}. With -o json, yaml or jsonpath
all of them are one object, with the members watch, position, revision and resources. That
of --order also has total, how many there are, before, how many come before the first one,
and next, the cursor of the last one, if more come behind it.

` + connect.NarrowingHelp + "\n\n" + connect.WindowHelp + "\n\n" + connect.Help + "\n\n" + c.ExitCodes,
		Example: `  watchtide get notes
  watchtide get notes greeting | jq .value
  watchtide get notes greeting -o jsonpath=.value.text
  watchtide get services -o jsonpath='{range .resources[*]}{.key} {.value.state}{"\n"}{end}'
  watchtide get services --labels 'app in (web, shop)' --fields state,node
  watchtide get services --filter 'value.state != "passing"'
  watchtide get services --order=-cpu_percent,name --limit 20`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: f.CompleteWatchAndKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.doGet(cmd, f, o, v, args)
		},
	}
	f.Register(get)
	connect.RegisterNarrowing(get, &v)
	connect.RegisterWindow(get, &v)
	o.Register(get, terminal.TableFormat, terminal.JSON, terminal.NDJSON, terminal.YAML, terminal.JSONPath)
	return get
}

func (c Console) doGet(cmd *cobra.Command, f *connect.Flags, o terminal.Flag, v client.View, args []string) error {
	if len(args) == 2 && v.Prefix != "" {
		return c.Usage("--prefix is for all resources of a watch, not for the one with a key")
	}
	if len(args) == 2 && v.Order != "" {
		return c.Usage("--order is for all resources of a watch, not for the one with a key")
	}
	if err := connect.CheckNarrowing(v, c.Terminal); err != nil {
		return err
	}
	one := len(args) == 2
	otherwise := c.otherwise(terminal.TableFormat, terminal.NDJSON)
	if one {
		otherwise = c.otherwise(terminal.JSON, terminal.NDJSON)
	}
	format, err := o.Format(otherwise)
	if err != nil {
		return c.Usage("%w", err)
	}
	return c.ask(cmd, f, v, func(ctx context.Context, s *client.Client) error {
		if one {
			line, err := s.Get(ctx, args[0], args[1], v)
			if err != nil {
				return err
			}
			return c.printOne(line, format)
		}
		state, err := s.Snapshot(ctx, args[0], v)
		if err != nil {
			return err
		}
		return c.print(state, v.Order != "", format)
	})
}

func (c Console) printOne(line json.RawMessage, format terminal.Format) error {
	if format.Name == terminal.TableFormat {
		return c.drawResources([]json.RawMessage{line}, true)
	}
	return format.Print(c.Stdout, line, c.Terminal)
}

// Print prints a state that is no window in a format.
func (c Console) Print(state client.Snapshot, format terminal.Format) error {
	return c.print(state, false, format)
}

// print prints a state in a format. window: it is one, in its order.
func (c Console) print(state client.Snapshot, window bool, format terminal.Format) error {
	switch format.Name {
	case terminal.NDJSON:
		return c.printLines(state.Resources)
	case terminal.TableFormat:
		return c.drawResources(state.Resources, window)
	}
	document, err := document(state, window)
	if err != nil {
		return err
	}
	return format.Print(c.Stdout, document, c.Terminal)
}

// document returns a state as JSON, with the values as they were received.
func document(s client.Snapshot, window bool) ([]byte, error) {
	type place struct {
		Total  int    `json:"total"`
		Before int    `json:"before"`
		Next   string `json:"next,omitempty"`
	}
	var of *place // none: no members of it
	if window {
		of = &place{s.Total, s.Before, s.Next}
	}
	head, err := json.Marshal(struct {
		Watch    string `json:"watch"`
		Position string `json:"position"`
		Revision string `json:"revision"`
		*place
	}{s.Watch, s.Position, s.Revision, of})
	if err != nil {
		return nil, err
	}
	out := append(head[:len(head)-1], `,"resources":[`...)
	for i, line := range s.Resources {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, line...)
	}
	return append(out, "]}"...), nil
}

func (c Console) printLines(lines []json.RawMessage) error {
	out := bufio.NewWriterSize(c.Stdout, 64<<10)
	for _, line := range lines {
		if c.isTerminal() {
			line = terminal.Escaped(line)
		}
		out.Write(line) // an error comes back from Flush
		out.WriteByte('\n')
	}
	return out.Flush()
}

// drawResources draws a table. inOrder: the lines have the order of its rows; otherwise that is the one of the keys.
func (c Console) drawResources(lines []json.RawMessage, inOrder bool) error {
	all := make([]client.Resource, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &all[i]); err != nil {
			return err
		}
	}
	if !inOrder {
		slices.SortFunc(all, func(x, y client.Resource) int { return client.CompareIDs(x.ID(), y.ID()) })
	}
	rows := make([]terminal.Row, len(all))
	for i, r := range all {
		rows[i] = terminal.Row{Key: r.Key, Value: r.Value}
	}
	for _, line := range terminal.NewTable().Draw(rows, c.width()) {
		if _, err := fmt.Fprintln(c.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// width is how long a line of a table may be.
func (c Console) width() int {
	if c.isTerminal() {
		if width, _, err := c.Terminal.Size(); err == nil && width > 0 {
			return width
		}
	}
	return math.MaxInt32
}
