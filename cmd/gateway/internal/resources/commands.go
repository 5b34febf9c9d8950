// Package resources has the commands that read and write the resources of a gateway, and list
// its watches: one request, or a few, and an answer.
package resources

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// Console is what the commands need of the process in which they run. Static.
type Console struct {
	Stdin    io.Reader
	Stdout   io.Writer
	Terminal terminal.Terminal
	// Agent is the User-Agent of requests.
	Agent string
	// ExitCodes is the part of the help that explains them.
	ExitCodes string
	// Usage makes an error of a wrong command line.
	Usage func(format string, args ...any) error
	// UntilSignal returns a context that ends with the first signal, and what releases it.
	UntilSignal func(context.Context) (context.Context, func())
}

// Commands returns the commands.
func Commands(c Console) []*cobra.Command {
	return []*cobra.Command{c.list(), c.get(), c.put(), c.delete(), c.verify()}
}

// ask makes requests to a gateway, until they are answered or a signal comes, and adds advice
// to a refusal.
func (c Console) ask(cmd *cobra.Command, f *connect.Flags, v client.View, requests func(context.Context, *client.Client) error) error {
	s, err := f.Connect()
	if err != nil {
		return c.Usage("%w", err)
	}
	defer s.Close()
	ctx, stop := c.UntilSignal(cmd.Context())
	defer stop()
	err = requests(ctx, s)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return connect.NarrowingRefused(f.Refused(err), v, c.Terminal)
}

// isTerminal reports whether the output is for a person.
func (c Console) isTerminal() bool { return c.Terminal.Size != nil }

// otherwise returns the form of output for lists unless a flag names one.
func (c Console) otherwise(onTerminal, inPipe string) string {
	if c.isTerminal() {
		return onTerminal
	}
	return inPipe
}
