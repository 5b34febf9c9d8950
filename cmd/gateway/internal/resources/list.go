package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

func (c Console) list() *cobra.Command {
	f := connect.New(c.Agent)
	var o terminal.Flag
	list := &cobra.Command{
		Use:   "list",
		Short: "List the watches of a gateway, with their state",
		Long: `List the watches of a gateway, with their state, and how many resources and
subscribers they have. To list the resources of a watch, see watchtide get.

On a terminal, the output is a table; in a pipe it is JSON, one watch on each line. With
-o json, yaml or jsonpath it is one object, whose member watches has everything that the
gateway reports. A - stands for a number that the gateway does not report, because only a part of
the watch may be seen.

` + connect.Help + "\n\n" + c.ExitCodes,
		Example: `  watchtide list
  watchtide list -o jsonpath='{range .watches[?(@.state!="in_sync")]}{.name}: {.reason}{"\n"}{end}'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, err := o.Format(c.otherwise(terminal.TableFormat, terminal.NDJSON))
			if err != nil {
				return c.Usage("%w", err)
			}
			return c.ask(cmd, f, client.View{}, func(ctx context.Context, s *client.Client) error {
				document, err := s.WatchesDocument(ctx)
				if err != nil {
					return err
				}
				return c.printWatches(document, format)
			})
		},
	}
	f.Register(list)
	o.Register(list, terminal.TableFormat, terminal.JSON, terminal.NDJSON, terminal.YAML, terminal.JSONPath)
	return list
}

func (c Console) printWatches(document json.RawMessage, format terminal.Format) error {
	var all struct{ Watches []json.RawMessage }
	if err := json.Unmarshal(document, &all); err != nil {
		return err
	}
	switch format.Name {
	case terminal.NDJSON:
		return c.printLines(all.Watches)
	case terminal.TableFormat:
		return c.drawWatches(all.Watches)
	}
	return format.Print(c.Stdout, document, c.Terminal)
}

func (c Console) drawWatches(all []json.RawMessage) error {
	rows := [][]string{{"NAME", "SOURCE", "STATE", "FOR", "RESOURCES", "SUBSCRIBERS", "WRITABLE", "REASON"}}
	for _, text := range all {
		var w client.Watch
		if err := json.Unmarshal(text, &w); err != nil {
			return err
		}
		rows = append(rows, rowOf(w, time.Now()))
	}
	_, err := fmt.Fprint(c.Stdout, terminal.Columns(rows))
	return err
}

func rowOf(w client.Watch, now time.Time) []string {
	resources, subscribers, writable := strconv.Itoa(w.Count), strconv.Itoa(w.Subscribers), "no"
	if w.Partial {
		resources, subscribers = "-", "-"
	}
	if w.Writable {
		writable = "yes"
	}
	return []string{w.Name, w.Source, string(w.State), age(w.Since, now), resources, subscribers, writable, w.Reason}
}

// age returns for how long something has been so, in its largest unit.
func age(since string, now time.Time) string {
	began, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return "-"
	}
	d := max(0, now.Sub(began))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
