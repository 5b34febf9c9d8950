package commands

import (
	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/resources"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// clientOptions are those of a command that follows or reads a part of a watch.
type clientOptions struct {
	gateway *connect.Flags
	server  string // its URL, once connect has found it
	view    client.View
}

func (o *clientOptions) register(c *cobra.Command) {
	o.gateway = connect.New(userAgent())
	o.gateway.Register(c)
	connect.RegisterNarrowing(c, &o.view)
}

func (o *clientOptions) connect() (*client.Client, error) {
	s, err := o.gateway.Connect()
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	o.server = s.URL()
	return s, nil
}

func (o *clientOptions) completeWatches(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return o.gateway.CompleteWatches(c, args, begun)
}

// viewHelp describes the flags that narrow a watch.
const viewHelp = connect.NarrowingHelp

// terminal returns what is known of the terminals of the process.
func (p process) terminal() terminal.Terminal {
	return terminal.Terminal{Errors: p.logTerminal, Size: p.size}
}

// console is what the commands of package resources need.
func (a *app) console() resources.Console {
	return resources.Console{
		Stdin: a.stdin, Stdout: a.stdout, Terminal: a.terminal(), Agent: userAgent(),
		ExitCodes: exitHelp, Usage: usageError, UntilSignal: a.untilSignal,
	}
}

// checkView finds a mistake in what narrows a watch before there is a connection.
func (a *app) checkView(v client.View) error { return connect.CheckNarrowing(v, a.terminal()) }

// refused adds advice to a refusal by the server.
func (a *app) refused(o clientOptions, err error) error {
	return connect.NarrowingRefused(o.gateway.Refused(err), o.view, a.terminal())
}

// escaped returns a text for a terminal.
func escaped(text []byte) []byte { return terminal.Escaped(text) }
