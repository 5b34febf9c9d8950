package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/cmd/gateway/config"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/stream"
)

type serveOptions struct {
	config     string
	demo       bool
	http, grpc string
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve watches over HTTP and gRPC",
		Long: `Serve watches over HTTP and gRPC.

Without --config it serves one watch, notes, that can be written to and is kept
in memory. It listens on loopback unless it is told otherwise, and logs one line
"listening" with the addresses, as http and grpc, when it accepts connections.

SIGTERM drains: /readyz fails at once, the listeners are closed after
stream.drain_delay, open streams say goodbye over stream.drain, and the exit code
is 0. An interrupt does the same without the delay. A second signal ends the process
at once, with another exit code. SIGHUP is logged and ignored: a changed
configuration takes effect after a restart.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.config, "config", "", "configuration `file` (YAML)")
	c.Flags().BoolVar(&o.demo, "demo", false, "also watch this machine: processes, interfaces and mounts")
	c.Flags().StringVar(&o.http, "http", "", "`address` for HTTP, instead of the configured one (default 127.0.0.1:8080); port 0: any")
	c.Flags().StringVar(&o.grpc, "grpc", "", "`address` for gRPC, instead of the configured one (default 127.0.0.1:9090); port 0: any")
	_ = c.MarkFlagFilename("config", "yaml", "yml")
	return c
}

func (a *app) serve(ctx context.Context, o serveOptions) error {
	c, err := o.load()
	if err != nil {
		return err
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	logger := a.logger(a.level)
	defer ignoreHangups(logger)()
	if a.limitMemory != nil {
		a.limitMemory(logger)
	}
	up := newUpstreams(logger)
	up.memory = stream.NewMemory(cmp.Or(c.Stream.Memory.Total, defaultMemory()))
	defer up.close()
	registry := stream.NewRegistry()
	defer registry.Close() // before the upstreams, which it reads

	listeners, err := listen(ctx, c)
	if err != nil {
		return err
	}
	g, err := a.gateway(c, registry, up, logger)
	if err != nil {
		closeListeners(listeners)
		return err
	}
	// Whatever the level: who started this with port 0 waits for it.
	a.logger(min(a.level, slog.LevelInfo)).Info("listening",
		"http", listeners.HTTP.Addr().String(), "grpc", listeners.GRPC.Addr().String())
	stopLogging := context.AfterFunc(ctx, func() {
		logger.Info("draining", "reason", context.Cause(ctx).Error())
	})
	defer stopLogging()
	return g.Serve(ctx, listeners)
}

// gateway declares every watch and makes the gateway that serves them.
func (a *app) gateway(c *config.Config, registry *stream.Registry, up *upstreams, logger *slog.Logger) (*gateway.Gateway, error) {
	for _, w := range c.Watches {
		if err := up.add(registry, c, w); err != nil {
			return nil, fmt.Errorf("watch %s: %w", w.Name, err)
		}
	}
	gc := gatewayConfig(c)
	gc.Registry, gc.Logger, gc.Version = registry, logger, buildVersion()
	return gateway.New(gc)
}

// gatewayConfig is what the configuration says of the gateway.
func gatewayConfig(c *config.Config) gateway.Config {
	return gateway.Config{
		Heartbeat: c.Stream.Heartbeat, WriteTimeout: c.Stream.WriteTimeout, Retry: c.Stream.Retry,
		MaxAge: c.Stream.MaxAge, PrimeWait: c.Stream.PrimeWait, AheadWait: c.Stream.AheadWait,
		StaleAllowed: c.Stream.StaleAllowed, DrainDelay: c.Stream.DrainDelay, Drain: c.Stream.Drain, MaxSubscribers: c.Stream.MaxSubscribers,
		MaxSubscribersPerClient: c.Stream.MaxSubscribersPerClient, MaxSubscribersPerWatch: c.Stream.MaxSubscribersPerWatch,
		TrustedProxies: c.HTTP.TrustedProxies, ForwardedHeader: c.HTTP.ForwardedHeader,
		SnapshotBudget: c.Stream.SnapshotBudget, BodyBudget: c.HTTP.BodyBudget, AnswerBudget: c.HTTP.AnswerBudget, MinRate: c.Stream.MinRate,
		Compression: gateway.Compression(c.Stream.Compression), CompressionCache: c.Stream.CompressionCache,
		Pump: gateway.Pump(c.Stream.Pump), Hosts: c.HTTP.Hosts, AllowedOrigins: c.HTTP.AllowedOrigins, Metrics: c.Metrics.Enabled,
	}
}

// load returns the configuration that the command line asks for.
func (o serveOptions) load() (*config.Config, error) {
	c := config.Default()
	var err error
	if o.config == "" {
		c.Sources = []config.Source{{Name: "local", Type: config.Store}}
		c.Watches = []config.Watch{{Name: "notes", Source: "local", Prime: true}}
	} else if c, err = config.Load(o.config, config.Environment{}); err != nil {
		return nil, err
	}
	if o.demo {
		if err := addDemo(c); err != nil {
			return nil, err
		}
	}
	if len(c.Watches) == 0 {
		return nil, fmt.Errorf("%s: there is nothing to serve: add watches, or use --demo", o.config)
	}
	for flag, address := range map[string]string{"http": o.http, "grpc": o.grpc} {
		if address != "" && !config.ValidListen(address) {
			return nil, usageError("--%s %q: want host:port, such as 127.0.0.1:8080", flag, address)
		}
	}
	c.HTTP.Listen, c.GRPC.Listen = cmp.Or(o.http, c.HTTP.Listen), cmp.Or(o.grpc, c.GRPC.Listen)
	return c, nil
}

// addDemo adds what --demo promises.
func addDemo(c *config.Config) error {
	const source = "machine"
	declared := false
	for _, s := range c.Sources {
		if s.Name == source && s.Type != config.Host {
			return errors.New("--demo: the configuration has a source machine that is not this machine")
		}
		declared = declared || s.Name == source
	}
	if !declared {
		c.Sources = append(c.Sources, config.Source{Name: source, Type: config.Host})
	}
	for _, name := range config.Collections {
		for _, w := range c.Watches {
			if w.Name == name {
				return fmt.Errorf("--demo: the configuration has a watch %s already", name)
			}
		}
		c.Watches = append(c.Watches, config.Watch{Name: name, Source: source, Prime: true, Collection: name, History: c.Stream.History,
			Memory: c.Stream.Memory.Watch})
	}
	return nil
}

// listen opens both ports before any upstream is asked for anything.
func listen(ctx context.Context, c *config.Config) (gateway.Listeners, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // no browser or proxy speaks it, and its sockets have fewer options
	web, err := lc.Listen(ctx, "tcp", c.HTTP.Listen)
	if err != nil {
		return gateway.Listeners{}, fmt.Errorf("http: %w", err)
	}
	rpc, err := lc.Listen(ctx, "tcp", c.GRPC.Listen)
	if err != nil {
		web.Close()
		return gateway.Listeners{}, fmt.Errorf("grpc: %w", err)
	}
	return gateway.Listeners{HTTP: web, HTTPTLS: c.HTTP.TLS, GRPC: rpc, GRPCTLS: c.GRPC.TLS}, nil
}

func closeListeners(l gateway.Listeners) {
	l.HTTP.Close()
	l.GRPC.Close()
}
