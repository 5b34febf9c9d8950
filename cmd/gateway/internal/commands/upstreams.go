package commands

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/memory"
	"github.com/watchtide/watchtide/stream/source/consul"
	"github.com/watchtide/watchtide/stream/source/etcd"
	"github.com/watchtide/watchtide/stream/source/files"
	gatewaysource "github.com/watchtide/watchtide/stream/source/gateway"
	grpcsource "github.com/watchtide/watchtide/stream/source/grpc"
	"github.com/watchtide/watchtide/stream/source/host"
	"github.com/watchtide/watchtide/stream/source/kubernetes"
	"github.com/watchtide/watchtide/stream/source/nats"
	viewsource "github.com/watchtide/watchtide/stream/source/view"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// upstreams makes the sources of watches: the one place that knows every source.
// A store, and another gateway, is shared by its watches; any other source is
// made for each watch.
//
// All its methods may be called from any goroutine: templates make watches at any time.
type upstreams struct {
	// Static after construction.
	logger *slog.Logger
	memory *memory.Ceiling // shared by all watches; nil: there is no ceiling

	mu       sync.Mutex                         // guards the following fields
	stores   map[string]*store.Store            // by name of the source
	gateways map[string]*gatewaysource.Upstream // by names of the source and the template
}

func newUpstreams(logger *slog.Logger) *upstreams {
	return &upstreams{logger: logger, stores: map[string]*store.Store{}, gateways: map[string]*gatewaysource.Upstream{}}
}

// made is a source that was made for one watch.
type made struct {
	source stream.Source
	writer stream.Writer // nil: the watch cannot be written to
	close  func()        // to be called when nothing reads the source any more; nil: it holds nothing
}

// add declares a watch and its source.
func (u *upstreams) add(registry *watch.Registry, c *config.Config, w config.Watch) error {
	wc, err := u.configure(registry, c, w, "", u.logger)
	if err != nil {
		return err
	}
	_, err = registry.Add(wc)
	return err
}

// configure makes the source of a watch. template is the name of the template that makes
// it, if any. A watch of which this one is a view must be there.
func (u *upstreams) configure(registry *watch.Registry, c *config.Config, w config.Watch, template string, logger *slog.Logger) (watch.Config, error) {
	wc := watchConfig(w)
	wc.Logger, wc.Memory = logger, u.memory
	if w.ViewOf != "" {
		of, found := registry.Watch(w.ViewOf)
		if !found {
			return wc, fmt.Errorf("there is no watch %q", w.ViewOf)
		}
		wc.SourceName, wc.Source = "view of "+w.ViewOf, viewsource.New(of, w.Definition)
		return wc, nil
	}
	s, err := sourceOf(c, w)
	if err != nil {
		return wc, err
	}
	one, err := u.source(s, w, template, logger)
	wc.Source, wc.Writer, wc.Close = one.source, one.writer, one.close
	return wc, err
}

// viewsLast returns the watches in an order in which each view comes after the watch of
// which it is a part.
func viewsLast(watches []config.Watch) (ordered []config.Watch) {
	added := map[string]bool{"": true}
	for len(ordered) < len(watches) {
		before := len(ordered)
		for _, w := range watches {
			if added[w.ViewOf] && !added[w.Name] {
				added[w.Name] = true
				ordered = append(ordered, w)
			}
		}
		if len(ordered) == before {
			return ordered // never: the configuration has no circles
		}
	}
	return ordered
}

// watchConfig is the part of a watch's configuration that is independent of its
// source.
func watchConfig(w config.Watch) watch.Config {
	return watch.Config{
		Name: w.Name, SourceName: w.Source, OnDemand: !w.Prime, Required: w.Required, Linger: w.Linger,
		SnapshotTimeout: w.SnapshotTimeout, MaxBytes: w.Memory, History: log.History(w.History), LabelsAt: w.LabelsAt,
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
		return u.stored(s, w), nil
	case config.Host:
		source, err := host.New(hostConfig(s.Host, w))
		return made{source: source}, err
	case config.GRPCs:
		source, err := grpcsource.New(grpcConfig(s.GRPC, w))
		if err != nil {
			return made{}, err
		}
		return made{source: source, close: source.Close}, nil
	case config.Files:
		source, err := files.New(filesConfig(s.Files))
		return made{source: source}, err
	case config.Gateway:
		return u.gateway(s, w, template)
	case config.Etcd:
		source, err := etcd.New(etcdConfig(s.Etcd, w))
		return made{source: source}, err
	case config.Kubernetes:
		source, err := kubernetes.New(kubernetesConfig(s.Kubernetes, w, logger))
		return made{source: source}, err
	case config.Consul:
		source, err := consul.New(consulConfig(s.Consul, w))
		return made{source: source}, err
	case config.NATS:
		source, err := nats.New(natsConfig(s.NATS, w))
		return made{source: source}, err
	}
	return made{}, fmt.Errorf("source %s is of type %q, which is not built in", s.Name, s.Type)
}

// stored returns the source and the writer of a watch of a store.
func (u *upstreams) stored(s config.Source, w config.Watch) made {
	shared := u.store(s)
	return made{source: shared.Source(w.Name), writer: shared.Writer(w.Name), close: func() { shared.Release(w.Name) }}
}

func (u *upstreams) store(s config.Source) *store.Store {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stores[s.Name] == nil {
		u.stores[s.Name] = store.New(storeConfig(s.Store))
	}
	return u.stores[s.Name]
}

func storeConfig(s config.StoreSource) store.Config {
	return store.Config{MaxValueBytes: int(s.MaxValueBytes), MaxBytes: s.MaxBytes}
}

func hostConfig(h config.HostSource, w config.Watch) host.Config {
	return host.Config{Collection: w.Collection, Interval: h.Interval}
}

func grpcConfig(g config.GRPCSource, w config.Watch) grpcsource.Config {
	return grpcsource.Config{
		Address: g.Address, Watch: w.Watch, Prefix: w.Prefix, TLS: g.TLS, Metadata: g.Metadata,
		Keepalive: g.Keepalive, StallAfter: g.StallAfter, MaxMessageBytes: g.MaxMessageBytes,
	}
}
