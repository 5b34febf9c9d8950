package commands

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/journal"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/etcd"
	"github.com/watchtide/watchtide/internal/source/files"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"github.com/watchtide/watchtide/internal/source/nats"
	"github.com/watchtide/watchtide/internal/source/postgres"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
	"go.opentelemetry.io/otel/trace"
)

// upstreams makes the sources of watches: the one place that knows every source.
// A store, another gateway, and a database of PostgreSQL, is shared by its watches; any other source is
// made for each watch.
//
// It belongs to one configuration. Watches and templates that a newer configuration keeps
// continue with their former upstreams: a new watch must not interrupt the connection to
// another gateway that others share.
//
// All its methods may be called from any goroutine: templates make watches at any time.
type upstreams struct {
	// Static after construction.
	logger *slog.Logger
	tracer trace.Tracer // nil: nothing is traced
	config *config.Config
	memory *memory.Ceiling // shared by all watches
	stores *stores
	// journal is that of the process, which it has since its start; nil: there is none.
	journal *journal.Journal
	views   *views.Views                // those that configurations declare
	hide    func(message string) string // nil: nothing is hidden

	mu        sync.Mutex                         // guards the following fields
	gateways  map[string]*gatewaysource.Upstream // by names of the source and the template
	databases map[string]*postgres.Upstream      // by names of the source
}

// newUpstreams returns the upstreams of a configuration without sources.
func newUpstreams(logger *slog.Logger, tracer trace.Tracer, declared *views.Views, hide func(message string) string) *upstreams {
	return &upstreams{
		logger: logger, tracer: tracer, config: &config.Config{}, memory: memory.NewCeiling(0), views: declared, hide: hide,
		stores: &stores{all: map[string]*store.Store{}}, gateways: map[string]*gatewaysource.Upstream{},
		databases: map[string]*postgres.Upstream{},
	}
}

// next returns the upstreams of another configuration, with the same stores and the same
// memory. Call settle on the upstreams that are in effect after that.
func (u *upstreams) next(c *config.Config) *upstreams {
	return &upstreams{logger: u.logger, tracer: u.tracer, config: c, memory: u.memory, stores: u.stores, journal: u.journal, views: u.views, hide: u.hide,
		gateways: map[string]*gatewaysource.Upstream{}, databases: u.databasesFor(c)}
}

// databasesFor returns the databases that another configuration has too. Their watches join the connection
// that there is: a permanent slot has no more than one.
func (u *upstreams) databasesFor(c *config.Config) map[string]*postgres.Upstream {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := map[string]*postgres.Upstream{}
	for name, upstream := range u.databases {
		was, _ := named(u.config.Sources, name, nameOfSource)
		if is, has := named(c.Sources, name, nameOfSource); has && was.Equal(is) {
			kept[name] = upstream
		}
	}
	return kept
}

// settle sets the limits of the stores, and removes the stores that the configuration does not
// have.
func (u *upstreams) settle() { u.stores.settle(u.config.Sources) }

// stores are the stores of a process, by the name of their source. A store exists as long as
// the configuration has its source, since its resources are nowhere else.
//
// All its methods may be called from any goroutine.
type stores struct {
	mu  sync.Mutex // guards all
	all map[string]*store.Store
}

func (s *stores) of(source config.Source, shared *memory.Ceiling, history log.Retention, logger *slog.Logger) (*store.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[source.Name]; one != nil {
		if was := one.Path(); was != source.Store.Path {
			return nil, fmt.Errorf("source %s: a store keeps its path while the gateway runs: it is %q; restart the gateway for %q", source.Name, was, source.Store.Path)
		}
		return one, nil
	}
	c := source.Store
	c.Memory, c.History, c.Logger = shared, history, logger.With("source", source.Name)
	one, err := store.Open(c)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", source.Name, err)
	}
	s.all[source.Name] = one
	return one, nil
}

// disks returns how the disks of the stores are that have one, by the name of their source.
func (s *stores) disks() map[string]stream.DiskStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]stream.DiskStats{}
	for name, one := range s.all {
		if d := one.Disk(); d.Path != "" {
			all[name] = d
		}
	}
	return all
}

// close closes the files of all stores.
func (s *stores) close() { s.settle(nil) }

func (s *stores) settle(sources []config.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[string]*store.Store{}
	for _, source := range sources {
		if one := s.all[source.Name]; one != nil && source.Type == config.Store {
			one.Reconfigure(source.Store)
			kept[source.Name] = one
		}
	}
	for name, one := range s.all {
		if kept[name] == nil {
			one.Close()
		}
	}
	s.all = kept
}

// made is a source that was made for one watch.
type made struct {
	source stream.Source
	writer stream.Writer // nil: the watch cannot be written to
	close  func()        // to be called when nothing reads the source any more; nil: it holds nothing
}

// configure makes the source of a watch. template is the name of the template that makes
// it, if any.
func (u *upstreams) configure(registry *watch.Registry, w config.Watch, template string, logger *slog.Logger) (watch.Config, error) {
	wc := watchConfig(w)
	wc.Logger, wc.Hide, wc.Memory, wc.Resynced = logger, u.hide, u.memory, traceResyncs(u.tracer, w.Name, w.Source)
	if w.ViewOf != "" {
		wc.SourceName, wc.SourceType = "view of "+w.ViewOf, string(config.View)
		if w.Grouping != nil {
			wc.CountedBy = w.Grouping.By()
			wc.Source = u.views.CountSource(w.ViewOf, func() (*watch.Watch, error) { return registry.Open(w.ViewOf) }, w.Grouping)
			return wc, nil
		}
		if isWindow(w.Definition) {
			wc.Source = u.views.WindowSource(w.ViewOf, func() (*watch.Watch, error) { return registry.Open(w.ViewOf) }, w.Definition)
			return wc, nil
		}
		// A draft is committed before its watches start, so that all of them can be found.
		wc.View = u.views.View(w.ViewOf, func() (*watch.Watch, error) { return registry.Open(w.ViewOf) }, w.Definition)
		return wc, nil
	}
	s, err := sourceOf(u.config, w)
	if err != nil {
		return wc, err
	}
	wc.SourceType, wc.Backoff.Max = string(s.Type), s.RetryMax
	one, err := u.source(s, w, template, logger)
	wc.Source, wc.Writer, wc.Close = one.source, one.writer, one.close
	if u.journal != nil && template == "" && slices.Contains(u.config.Journals(), w.Name) {
		wc.Journal = u.journal.Watch(w.Name, s.Identity(w))
	}
	return wc, err
}

// isWindow reports whether a definition, which may be nil, is that of a window.
func isWindow(d *view.Definition) bool {
	if d == nil {
		return false
	}
	_, is := d.Window()
	return is
}

// watchConfig is the part of a watch's configuration that is independent of its
// source.
func watchConfig(w config.Watch) watch.Config {
	return watch.Config{
		Name: w.Name, SourceName: w.Source, OnDemand: !w.Prime, Required: w.Required, Linger: w.Linger,
		SnapshotTimeout: w.SnapshotTimeout, MaxBytes: w.Memory, History: w.History, LabelsAt: w.LabelsAt,
	}
}

func sourceOf(c *config.Config, w config.Watch) (config.Source, error) {
	for _, s := range c.Sources {
		if s.Name == w.Source {
			return s, nil
		}
	}
	return config.Source{}, fmt.Errorf("there is no source %q", w.Source)
}

// source makes the source of a watch.
func (u *upstreams) source(s config.Source, w config.Watch, template string, logger *slog.Logger) (made, error) {
	switch s.Type {
	case config.Store:
		return u.stored(s, w)
	case config.Host:
		s.Host.Collection = w.Collection
		source, err := host.New(s.Host)
		return made{source: source}, err
	case config.GRPCs:
		s.GRPC.Watch, s.GRPC.Prefix = w.Watch, w.Prefix
		source, err := grpcsource.New(s.GRPC)
		if err != nil {
			return made{}, err
		}
		return made{source: source, close: source.Close}, nil
	case config.Files:
		source, err := files.New(s.Files)
		return made{source: source}, err
	case config.Gateway:
		return u.gateway(s, w, template)
	case config.Etcd:
		s.Etcd.Prefix, s.Etcd.Values = w.Prefix, w.Values
		source, err := etcd.New(s.Etcd)
		return withWriter(source, err, w, func() (*adapter.Writer, error) { return etcd.NewWriter(s.Etcd, logger.With("watch", w.Name)) })
	case config.Kubernetes:
		s.Kubernetes.Objects, s.Kubernetes.Logger = w.Kubernetes, logger.With("watch", w.Name)
		source, err := kubernetes.New(s.Kubernetes)
		return withWriter(source, err, w, func() (*adapter.Writer, error) {
			return kubernetes.NewWriter(s.Kubernetes, logger.With("watch", w.Name))
		})
	case config.Consul:
		s.Consul.Resources, s.Consul.Prefix, s.Consul.Values = w.Consul, w.Prefix, w.Values
		source, err := consul.Open(s.Consul)
		return withWriter(source, err, w, func() (*adapter.Writer, error) { return consul.NewWriter(s.Consul, logger.With("watch", w.Name)) })
	case config.Postgres:
		w.Postgres.Unmanaged = template != ""
		return u.table(s, w)
	case config.NATS:
		s.NATS.Bucket, s.NATS.Keys, s.NATS.Values = w.Bucket, w.Keys, w.Values
		source, err := nats.New(s.NATS)
		return withWriter(source, err, w, func() (*adapter.Writer, error) { return nats.NewWriter(s.NATS, logger.With("watch", w.Name)) })
	}
	return made{}, fmt.Errorf("source %s is of type %q, which is not built in", s.Name, s.Type)
}

// withWriter adds the writer of a writable watch to its source.
func withWriter(source stream.Source, err error, w config.Watch, open func() (*adapter.Writer, error)) (made, error) {
	if err != nil || !w.Writable {
		return made{source: source}, err
	}
	writer, err := open()
	if err != nil {
		return made{}, err
	}
	return made{source: source, writer: writer, close: writer.Close}, nil
}

// stored returns the source and the writer of a watch of a store.
func (u *upstreams) stored(s config.Source, w config.Watch) (made, error) {
	shared, err := u.storeOf(s)
	if err != nil {
		return made{}, err
	}
	return made{source: shared.Source(w.Name), writer: shared.Writer(w.Name), close: func() { shared.Release(w.Name) }}, nil
}

// openStores opens the stores that have a file, also those that no watch uses yet: what is wrong with
// a file is known at start.
func (u *upstreams) openStores() error {
	for _, s := range u.config.Sources {
		if s.Type != config.Store || s.Store.Path == "" {
			continue
		}
		if _, err := u.storeOf(s); err != nil {
			return err
		}
	}
	return nil
}

func (u *upstreams) storeOf(s config.Source) (*store.Store, error) {
	return u.stores.of(s, u.memory, u.longestHistory(s.Name), u.logger)
}

// longestHistory is how many deletes the watches of a source remember at most, and for how long.
func (u *upstreams) longestHistory(source string) log.Retention {
	longest := u.config.Stream.History.WithDefaults()
	for _, w := range u.config.Watches {
		if w.Source == source {
			h := w.History.WithDefaults()
			longest.MaxAge = max(longest.MaxAge, h.MaxAge)
			longest.MaxDeletes, longest.MaxBytes = max(longest.MaxDeletes, h.MaxDeletes), max(longest.MaxBytes, h.MaxBytes)
		}
	}
	return longest
}

// gateway returns the source of a watch at another gateway, whose watches all
// share its connections. Those of a template share their own: clients have them come and
// go, and each time the others of a connection reconnect.
func (u *upstreams) gateway(s config.Source, w config.Watch, template string) (made, error) {
	upstream, err := u.gatewayOf(s, template)
	if err != nil {
		return made{}, err
	}
	source, err := upstream.Source(w.Watch, w.Definition)
	if err != nil {
		return made{}, err
	}
	return made{source: source, close: source.Close}, nil
}

func (u *upstreams) gatewayOf(s config.Source, template string) (*gatewaysource.Upstream, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name := s.Name + " " + template
	if u.gateways[name] == nil {
		upstream, err := gatewaysource.New(s.Gateway)
		if err != nil {
			return nil, err
		}
		u.gateways[name] = upstream
	}
	return u.gateways[name], nil
}

// table returns the source of a watch of a table. All tables of a database share its connection.
func (u *upstreams) table(s config.Source, w config.Watch) (made, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.databases[s.Name] == nil {
		s.Postgres.Logger = u.logger.With("source", s.Name)
		upstream, err := postgres.New(s.Postgres)
		if err != nil {
			return made{}, err
		}
		u.databases[s.Name] = upstream
	}
	source, err := u.databases[s.Name].Source(w.Postgres)
	return made{source: source}, err
}
