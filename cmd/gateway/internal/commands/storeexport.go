package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/etcd"
	"github.com/watchtide/watchtide/internal/source/nats"
	"github.com/watchtide/watchtide/stream/store"
)

// exportOptions are the flags of store export.
type exportOptions struct {
	to      string
	watches []string
}

func (a *app) storeExportCommand() *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the resources of a file to stdout, or to another upstream",
		Long: `Write the resources of the file of a store to stdout: a line of JSON with the newest
revision, a line for each resource with watch, key, revision and value, and
a line with their number. It changes nothing. The gateway must have been stopped,
or the file be a copy.

With --to, create them at another upstream instead: that of the watch of the same name
in a configuration, which must be of type etcd, nats or consul (collection: kv). Its
address, its credentials and the prefix or the bucket are those of the configuration. Keys and values are checked
before the first write. A key that is there with the same value counts as done; one with
another value is an error, and nothing is overwritten. So what was broken off can be run
again. Clients that verify what they hold then load nothing.`,
		Example: `  watchtide store export data/notes.db > notes.ndjson
  watchtide store export data/notes.db --to gateway.yaml --watch notes`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.to != "":
				return a.moveStore(cmd.Context(), args[0], o)
			case len(o.watches) > 0:
				return usageError("--watch is for --to: without it, all watches are exported")
			}
			n, err := store.Export(args[0], a.stdout)
			if err == nil {
				_, err = fmt.Fprintf(a.stderr, "%s: %s\n", args[0], count(n, "resource", "resources"))
			}
			return err
		},
	}
	c.Flags().StringVar(&o.to, "to", "", "create the resources at the upstreams of this configuration `FILE`")
	c.Flags().StringArrayVar(&o.watches, "watch", nil, "only this `WATCH`; may be repeated")
	_ = c.MarkFlagFilename("to", "yaml", "yml")
	return c
}

// moveStore creates the resources of the file of a store at other upstreams.
func (a *app) moveStore(ctx context.Context, file string, o exportOptions) error {
	c, err := config.Load(o.to, config.Environment{Getenv: a.inserted.Getenv})
	if err != nil {
		return err
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	to := &targets{config: c}
	defer to.close()
	n, err := store.Copy(ctx, file, o.watches, func(watch string) (store.Target, error) { return to.open(ctx, watch) }, func(n store.Copied) {
		fmt.Fprintf(a.stderr, "%s: %d of %s\n", file, n.Created+n.Present, count(n.All, "resource", "resources"))
	})
	if done := n.Created + n.Present; err != nil && done > 0 {
		return fmt.Errorf("%w (%d of %s are there; run it again to go on)", err, done, count(n.All, "resource", "resources"))
	}
	if err == nil {
		_, err = fmt.Fprintf(a.stderr, "%s: %s created, %d there already\n", file, count(n.Created, "resource", "resources"), n.Present)
	}
	return err
}

// targets are the upstreams that the watches of a file have in a configuration.
type targets struct {
	config *config.Config
	opened []target
}

// target is one of them.
type target interface {
	store.Target
	Close()
}

// open connects to the upstream of a watch.
func (t *targets) open(ctx context.Context, name string) (store.Target, error) {
	at := slices.IndexFunc(t.config.Watches, func(w config.Watch) bool { return w.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("the configuration has no watch %s: want one of that name, or --watch for others", name)
	}
	one, err := newTarget(ctx, t.config, t.config.Watches[at])
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", name, err)
	}
	t.opened = append(t.opened, one)
	return one, nil
}

func newTarget(ctx context.Context, c *config.Config, w config.Watch) (target, error) {
	if w.ViewOf != "" {
		return nil, fmt.Errorf("it is a view of %s in the configuration: want a watch of a source of type etcd, nats or consul", w.ViewOf)
	}
	s, err := sourceOf(c, w)
	if err != nil {
		return nil, err
	}
	switch s.Type {
	case config.Etcd:
		s.Etcd.Prefix, s.Etcd.Values = w.Prefix, w.Values
		return etcd.NewTarget(ctx, s.Etcd)
	case config.NATS:
		s.NATS.Bucket, s.NATS.Keys, s.NATS.Values = w.Bucket, w.Keys, w.Values
		return nats.NewTarget(ctx, s.NATS)
	case config.Consul:
		s.Consul.Resources, s.Consul.Prefix, s.Consul.Values = w.Consul, w.Prefix, w.Values
		return consul.NewTarget(s.Consul)
	}
	return nil, fmt.Errorf("its source %s is of type %s in the configuration: want one of type etcd, nats or consul", s.Name, s.Type)
}

func (t *targets) close() {
	for _, one := range t.opened {
		one.Close()
	}
}
