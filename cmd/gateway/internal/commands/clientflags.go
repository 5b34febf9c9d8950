package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/bearer"
	"github.com/watchtide/watchtide/cmd/gateway/internal/table"
	"github.com/watchtide/watchtide/stream/view"
)

// clientOptions are those of every command that talks to a gateway.
type clientOptions struct {
	server string
	bearer *bearer.Source
	view   client.View
}

func (o *clientOptions) register(c *cobra.Command) {
	c.Flags().StringVar(&o.server, "server", "http://127.0.0.1:8080", "`URL` of the gateway")
	o.bearer = &bearer.Source{}
	o.bearer.Register(c.Flags())
	_ = c.MarkFlagFilename("token-file")
	c.Flags().StringVar(&o.view.Prefix, "prefix", "", "only keys that begin with `TEXT`")
	c.Flags().StringVar(&o.view.Labels, "labels", "", "only resources whose labels match the `SELECTOR`, as with kubectl -l")
	c.Flags().StringVar(&o.view.Filter, "filter", "", "only resources for which the `CEL` expression is true")
	c.Flags().StringArrayVar(&o.view.Fields, "fields", nil, "only these `PATHS` of the values, with commas between them")
}

// viewHelp describes the flags that narrow a watch.
const viewHelp = `--prefix, --labels, --filter and --fields narrow a watch at the server: only what is
asked for is sent. --filter is an expression in CEL (https://cel.dev) over

  key       string               the key of a resource
  value     dyn                  its value
  labels    map(string, string)  its labels
  revision  int                  the revision at which it last changed

A resource for which it cannot be told, since it lacks a member that the expression
names, is left out.`

func (o *clientOptions) connect() (*client.Server, error) {
	token, err := o.bearer.For(o.server)
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	s, err := client.NewServer(o.server, client.ServerOptions{Token: token})
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	return s, nil
}

// completionTime is how long a shell may wait for the names of the watches.
const completionTime = time.Second

// completeWatches offers the names of the gateway's watches.
func (o *clientOptions) completeWatches(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, err := o.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	watches, err := s.Watches(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, w := range watches {
		names = append(names, cobra.CompletionWithDesc(w.Name, w.Source+", "+w.State))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// checkView finds a mistake in what narrows a watch before there is a connection. What a
// filter may cost is for the server to say.
func (a *app) checkView(v client.View) error {
	p := view.Params{Prefix: v.Prefix, Labels: v.Labels, Filter: v.Filter, ValueSize: 1}
	if len(v.Fields) > 0 {
		p.Fields = []string{strings.Join(v.Fields, ",")}
	}
	_, err := view.Parse(p)
	var bad *view.Error
	if !errors.As(err, &bad) {
		return err
	}
	return usageError("--%w%s", bad, a.excerpt(textsOf(v)[bad.Parameter], bad.Offset))
}

// textsOf returns the texts that narrow a watch, by parameter.
func textsOf(v client.View) map[string]string {
	return map[string]string{"prefix": v.Prefix, "labels": v.Labels, "filter": v.Filter, "fields": strings.Join(v.Fields, ",")}
}

// excerpt shows a place in a text, for a terminal: below the message, the line with the
// place, and a caret under it. Empty: there is no terminal, or the line does not fit.
func (a *app) excerpt(text string, offset int) string {
	if !a.logTerminal || offset < 0 || offset > len(text) {
		return ""
	}
	begin := strings.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := strings.Cut(text[begin:], "\n")
	before := string(escaped([]byte(text[begin:offset])))
	shown := string(escaped([]byte(line)))
	if len(shown) == 0 || table.Width(shown) > a.width()-len(indent) {
		return ""
	}
	return "\n" + indent + shown + "\n" + indent + blank(before) + "^"
}

const indent = "  "

// width is that of the terminal, as far as it is known.
func (a *app) width() int {
	if a.size != nil {
		if width, _, err := a.size(); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// blank returns white space as wide as a text, which has the same tabs.
func blank(text string) string {
	var out strings.Builder
	for i, part := range strings.Split(text, "\t") {
		if i > 0 {
			out.WriteByte('\t')
		}
		out.WriteString(strings.Repeat(" ", table.Width(part)))
	}
	return out.String()
}

// refused adds advice to a refusal by the server.
func (a *app) refused(o clientOptions, err error) error {
	if errors.Is(err, client.ErrUnauthenticated) {
		return fmt.Errorf("%w; %s", err, o.bearer.Advice())
	}
	return a.refusedView(o.view, err)
}

// refusedView gives the server's refusal of what narrows a watch the exit code of a wrong
// command line, and shows the place.
func (a *app) refusedView(v client.View, err error) error {
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
		return codedError{exitUsage, err}
	}
	return usageError("%w%s", err, a.excerpt(text, p.Offset))
}
