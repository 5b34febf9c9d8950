package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/cmd/gateway/internal/changes"
	"github.com/watchtide/watchtide/cmd/gateway/internal/telemetry"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/journal"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

type serveOptions struct {
	config   string
	demo     bool
	flags    config.Flags
	inserted *inserted
}

func (a *app) serveCommand() *cobra.Command {
	o := serveOptions{inserted: a.inserted}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve watches over HTTP and gRPC",
		Long: `Serve watches over HTTP and gRPC.

Without --config it serves one watch, notes, that can be written to. It is kept in the
file notes.db in $STATE_DIRECTORY, $XDG_STATE_HOME/watchtide or
~/.local/state/watchtide, or in memory if that is not possible; the first line of the
log says where. It listens on loopback unless it is told otherwise, and logs one line
"listening" with the addresses, as http, grpc and operations, when it accepts
connections. A log that is text then has a line "Dashboard:" with the address for a
browser on this machine. Until each watch that is primed at start is primed, and for stream.prime_wait
at most, only operators are served. To listen on other addresses than those of loopback, it needs a section
auth in the configuration, or --auth none: it then asks nobody for credentials.

SIGTERM drains: /readyz fails at once, the listeners are closed after
stream.drain_delay, open streams say goodbye over stream.drain, and the exit code
is 0. An interrupt does the same without the delay. A second signal ends the process
at once, with another exit code.

SIGHUP, and a change of the configuration or of a file that it names, reload the
configuration, except for the addresses of listeners. What has not changed is not
touched. If the configuration has a mistake, it is logged, and the old one stays.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.config, "config", "", "configuration `file` (YAML)")
	c.Flags().BoolVar(&o.demo, "demo", false, "also watch this machine: processes, interfaces and mounts")
	c.Flags().StringVar(&o.flags.HTTP, "http", "", "`address` for HTTP, instead of the configured one (default 127.0.0.1:8080); port 0: any")
	c.Flags().StringVar(&o.flags.GRPC, "grpc", "", "`address` for gRPC, instead of the configured one (default: no gRPC); port 0: any")
	c.Flags().StringVar(&o.flags.Operations, "operations", "", "`address` for operators, instead of the configured one (default "+config.DefaultOperations+", or any port if that is taken); off: none")
	c.Flags().StringVar(&o.flags.Auth, "auth", "", "with `none`, other machines may reach the listeners, and nobody is asked for credentials")
	_ = c.MarkFlagFilename("config", "yaml", "yml")
	return c
}

func (a *app) serve(ctx context.Context, o serveOptions) error {
	signals, release := hangups()
	defer release()
	read := Contents{}
	c, err := o.load(read.ReadFile)
	if err != nil {
		return err
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	defer a.detachLog()()
	logger := a.logger()
	s := &daemon{logger: logger, stderr: a.unhidden, hide: a.inserted.Hide, registry: watch.NewRegistry(), views: views.NewDeclared(), secured: newSecured(c), started: c}
	s.upstreams = newUpstreams(logger, nil, s.views, s.hide)
	var lost error
	if o.config == "" && a.notesFile != nil {
		lost = s.keepNotes(c, a.notesFile)
	}
	if o.demo || o.config == "" {
		tellStores(logger, c.Sources, lost)
	}
	if a.logGRPC != nil {
		a.logGRPC(logger)
	}
	if a.limitMemory != nil {
		a.limitMemory(logger)
	}
	defer s.closeStores()
	defer s.views.Close() // which the registry uses until it is closed
	defer s.registry.Close()
	defer s.stopObserving()
	if err := s.observe(ctx, c); err != nil {
		return err
	}
	listeners, err := listen(ctx, c, s.secured, logger)
	if err != nil {
		return err
	}
	if err := s.begin(c); err != nil {
		if listeners.Operations != nil {
			listeners.Operations.Close()
		}
		return err
	}
	if a.paceCollector != nil {
		go a.paceCollector(ctx, s.upstreams.memory.Held)
	}
	if c.Auth.None {
		logger.Warn("nobody is asked for credentials: whoever reaches a listener may do everything that it offers", "auth", config.NoAuth)
	}
	logger.Info("waiting for the watches to be primed", "at_most", cmp.Or(c.Stream.PrimeWait, gateway.DefaultPrimeWait), "operations", addressOf(listeners.Operations))
	listeners.Open = func(ctx context.Context) (web, calls net.Listener, err error) {
		if web, calls, err = listenPublic(ctx, c); err == nil {
			// At any level: a caller that chose port 0 waits for it.
			a.announcer().Info("listening",
				"http", addressOf(web), "grpc", addressOf(calls), "operations", addressOf(listeners.Operations))
			if a.logging.IsText(a.logTerminal) {
				fmt.Fprintf(a.stderr, "Dashboard: %s\n", dashboardAt(web.Addr(), listeners.HTTPTLS != nil))
			}
		}
		return web, calls, err
	}
	defer startReloading(ctx, &reloader{daemon: s, options: o, hangups: signals}, read)()
	return s.gateway.Serve(ctx, listeners)
}

// notesFile returns the file that keeps the notes of a gateway without a configuration: in the folder that systemd
// gives a service, or in that of the user. The folder is made.
func notesFile() (string, error) {
	folder, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	if folder == "" {
		var err error
		if folder, err = changes.Folder(); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "notes.db"), nil
}

// keepNotes opens the file of the notes for a configuration that has nothing else. If it cannot be opened, for
// instance because another gateway has it open, the notes are in memory: such a gateway always starts.
func (s *daemon) keepNotes(c *config.Config, file func() (string, error)) (err error) {
	notes := &c.Sources[0].Store
	if notes.Path, err = file(); err == nil {
		err = s.upstreams.next(c).openStores()
	}
	if err != nil {
		notes.Path = ""
	}
	return err
}

// tellStores logs where what is written is kept, before anybody writes. lost is why notes are not kept in a file;
// nil: they were not to be.
func tellStores(logger *slog.Logger, sources []config.Source, lost error) {
	for _, s := range sources {
		switch {
		case s.Type != config.Store:
		case lost != nil:
			logger.Warn("what is written is in memory, and lost when this process ends", "source", s.Name, "because", lost.Error())
		case s.Store.Path == "":
			logger.Info("what is written is in memory, and lost when this process ends: to keep it, give the store a path in a configuration", "source", s.Name)
		default:
			logger.Info("what is written is kept in a file", "source", s.Name, "path", s.Store.Path)
		}
	}
}

// detachLog makes the log wait for no output that hangs, until the function that it returns is called.
func (a *app) detachLog() (attach func()) {
	out := a.stderr
	lines := telemetry.NewLogLines(out, func(w io.Writer, lost int) {
		a.logging.Logger(w, a.logTerminal).Warn("the output of the log hung, and lines were lost", "lines", lost)
	})
	a.stderr = lines
	return func() {
		a.stderr = out
		_ = lines.Close(time.Second) // nobody could be told
	}
}

// begin makes the gateway, and puts its first configuration into effect.
func (s *daemon) begin(c *config.Config) (err error) {
	gc := gatewayConfig(c)
	gc.Registry, gc.Logger, gc.Version, gc.Commit, gc.Profiles = s.registry, s.logger, buildVersion(), buildCommit(), telemetry.Handler(s.flight)
	gc.Tracing = tracingConfig(s.spans, c.Tracing)
	s.upstreams.tracer = s.tracer()
	s.views.LimitGroups(c.Stream.MaxCountGroups)
	gc.Stores = s.upstreams.stores.disks
	if c.State.Dir != "" {
		s.openJournal(c)
		gc.Journal = s.upstreams.journal.Stats
	}
	first, err := s.askCluster(c, gc.Access)
	if err != nil {
		return err
	}
	s.cluster.Store(first)
	gc.Cluster = func() map[string]cluster.Stats { return s.cluster.Load().stats() }
	if s.gateway, err = gateway.New(gc); err != nil {
		return err
	}
	_, err = s.apply(c)
	return err
}

// openJournal opens the journal. Without it the gateway serves all the same.
func (s *daemon) openJournal(c *config.Config) {
	j, err := journal.Open(journal.Config{Dir: c.State.Dir, MaxAge: c.State.MaxAge, Logger: s.logger})
	if err != nil {
		s.logger.Error("there is no journal: the watches begin from nothing after a restart", "error", err.Error())
		return
	}
	s.upstreams.journal = j
}

// closeStores closes the files of stores and the journal, when nothing writes to them any more, and the
// connection to a cluster.
func (s *daemon) closeStores() {
	s.cluster.Load().close(nil)
	s.upstreams.stores.close()
	s.upstreams.journal.Close()
}

// accessConfig returns the access settings of the gateway; nil: everybody may do everything.
func accessConfig(c *config.Config) *gateway.Access {
	if !c.Auth.Given {
		return nil
	}
	rules := c.Policy
	if rules == nil {
		rules = access.EmptyPolicy()
	}
	return &gateway.Access{Credentials: c.Credentials(), Revoked: c.Auth.Revoked.Watch, Policy: rules, OperationsRole: c.Operations.Role,
		Limits: c.Auth.Limits}
}

// gatewayConfig is the gateway's part of the configuration.
func gatewayConfig(c *config.Config) gateway.Config {
	gc := gateway.Config{
		StreamSettings: c.Stream.StreamSettings, HTTPSettings: c.HTTP.HTTPSettings,
		Uncompressed: c.Uncompressed(), AfterRush: returnMemory, Metrics: c.Metrics.Enabled, Replicas: c.Operations.Replicas,
		ReplicasToken: string(c.Operations.ReplicasToken), ReplicasTLS: c.Operations.ReplicasTLS, Certificates: certificatesOf(c), Access: accessConfig(c),
	}
	gc.Views = gateway.ViewLimits{Max: c.Stream.MaxViews, MaxPerClient: c.Stream.MaxViewsPerClient, MaxOrdersPerClient: c.Stream.MaxOrdersPerClient, MaxBytes: c.Stream.Memory.Views, Linger: c.Stream.ViewLinger, MaxGroups: c.Stream.MaxCountGroups}
	gc.Hosts = hostsOf(c)
	return gc
}

// load returns the configuration that the command line specifies.
func (o serveOptions) load(readFile func(string) ([]byte, error)) (*config.Config, error) {
	if err := o.checkFlags(); err != nil {
		return nil, err
	}
	env := config.Environment{Flags: o.flags, ReadFile: readFile, Getenv: o.inserted.Getenv}
	var c *config.Config
	var err error
	if o.config == "" {
		if c, err = config.Parse("", nil, env); err != nil {
			return nil, err
		}
		c.Sources = []config.Source{{Name: "local", Type: config.Store}}
		c.Watches = []config.Watch{{Name: "notes", Source: "local", Prime: true}}
	} else if c, err = config.Load(o.config, env); err != nil {
		return nil, err
	}
	if o.demo {
		if err := addDemo(c); err != nil {
			return nil, err
		}
	}
	if len(c.Watches)+len(c.Templates) == 0 {
		return nil, fmt.Errorf("%s: there is nothing to serve: add watches, or use --demo", o.config)
	}
	return c, nil
}

// checkFlags validates the flags alone.
func (o serveOptions) checkFlags() error {
	for flag, address := range map[string]string{"http": o.flags.HTTP, "grpc": o.flags.GRPC, "operations": o.flags.Operations} {
		off := flag == "operations" && address == config.OperationsOff
		if address != "" && !off && !config.ValidListen(address) {
			return usageError("--%s %q: want host:port, such as 127.0.0.1:8080", flag, address)
		}
	}
	if o.flags.Auth != "" && o.flags.Auth != config.NoAuth {
		return usageError("--auth %q: want none; credentials are configured in the section auth of a file", o.flags.Auth)
	}
	return nil
}

// addDemo adds the watches of --demo.
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
		c.Watches = append(c.Watches, config.Watch{
			Name: name, Source: source, Prime: true, History: c.Stream.History, Memory: c.Stream.Memory.Watch,
			Selection: config.Selection{Collection: name},
		})
	}
	return nil
}
