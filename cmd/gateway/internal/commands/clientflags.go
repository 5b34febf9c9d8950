package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
)

// clientOptions are those of every command that talks to a gateway.
type clientOptions struct {
	server string
	prefix string
}

func (o *clientOptions) register(c *cobra.Command) {
	c.Flags().StringVar(&o.server, "server", "http://127.0.0.1:8080", "`URL` of the gateway")
	c.Flags().StringVar(&o.prefix, "prefix", "", "only keys that begin with `TEXT`")
}

func (o *clientOptions) connect() (*client.Server, error) {
	s, err := client.NewServer(o.server)
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
