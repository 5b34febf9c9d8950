package connect

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
	"github.com/watchtide/watchtide/internal/view"
)

// NarrowingHelp describes the flags.
const NarrowingHelp = `--prefix, --labels, --filter and --fields narrow a watch at the server: only what is
asked for is sent. --filter is an expression in CEL (https://cel.dev) over

  key       string               the key of a resource
  value     dyn                  its value
  labels    map(string, string)  its labels
  revision  int                  the revision at which it last changed

A resource that lacks a member that the expression names is left out.`

// NarrowingMistake is an error of the command line: what one of the flags says is wrong.
type NarrowingMistake struct{ error }

// Unwrap returns what is wrong.
func (m NarrowingMistake) Unwrap() error { return m.error }

// RegisterNarrowing adds the flags to a command, which set v.
func RegisterNarrowing(c *cobra.Command, v *client.View) {
	c.Flags().StringVar(&v.Prefix, "prefix", "", "only keys that begin with `TEXT`")
	c.Flags().StringVar(&v.Labels, "labels", "", "only resources whose labels match the `SELECTOR`, as with kubectl -l")
	c.Flags().StringVar(&v.Filter, "filter", "", "only resources for which the `CEL` expression is true")
	c.Flags().StringArrayVar(&v.Fields, "fields", nil, "only these `PATHS` of the values, with commas between them")
	for _, name := range []string{"prefix", "labels", "filter", "fields"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// CheckNarrowing finds a Mistake before there is a connection, and shows its place on a terminal. What a
// filter may cost is for the server to say.
func CheckNarrowing(v client.View, t terminal.Terminal) error {
	p := view.Params{Prefix: v.Prefix, Labels: v.Labels, Filter: v.Filter, ValueSize: 1}
	if len(v.Fields) > 0 {
		p.Fields = []string{strings.Join(v.Fields, ",")}
	}
	_, err := view.Parse(p)
	var bad *view.Error
	if !errors.As(err, &bad) {
		return err
	}
	return NarrowingMistake{fmt.Errorf("--%w%s", bad, t.Excerpt(textsOf(v)[bad.Parameter], bad.Offset))}
}

// textsOf returns the texts that narrow a watch, by parameter.
func textsOf(v client.View) map[string]string {
	return map[string]string{"prefix": v.Prefix, "labels": v.Labels, "filter": v.Filter, "fields": strings.Join(v.Fields, ",")}
}

// NarrowingRefused makes a Mistake of the server's refusal of what a flag says, and shows its place on a
// terminal. Any other error is unchanged.
func NarrowingRefused(err error, v client.View, t terminal.Terminal) error {
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != http.StatusBadRequest {
		return err
	}
	parameter, _, _ := strings.Cut(p.Parameter, ".")
	text, known := textsOf(v)[parameter]
	switch {
	case !known:
		return err
	case p.Column == 0:
		return NarrowingMistake{err}
	}
	return NarrowingMistake{fmt.Errorf("%w%s", err, t.Excerpt(text, p.Offset))}
}
