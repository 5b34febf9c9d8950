package commands

import (
	"fmt"
	"log/slog"

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
// Owned by serve.
type upstreams struct {
	logger   *slog.Logger
	memory   *memory.Ceiling         // shared by all watches; nil: there is no ceiling
	stores   map[string]*store.Store // by name of the source
	open     []*grpcsource.Source
	gateways map[string]*gatewaysource.Upstream // by name of the source
}

func newUpstreams(logger *slog.Logger) *upstreams {
	return &upstreams{logger: logger, stores: map[string]*store.Store{}, gateways: map[string]*gatewaysource.Upstream{}}
}

// close closes every connection. Call it after the registry is closed, when
// nothing reads from them.
func (u *upstreams) close() {
	for _, c := range u.open {
		c.Close()
	}
}

// add declares a watch and its source.
func (u *upstreams) add(registry *watch.Registry, c *config.Config, w config.Watch) error {
	if w.ViewOf != "" {
		return u.addView(registry, w)
	}
	s, err := sourceOf(c, w)
	if err != nil {
		return err
	}
	source, writer, err := u.source(s, w)
	if err != nil {
		return err
	}
	wc := watchConfig(w)
	wc.Source, wc.Writer, wc.Logger, wc.Memory = source, writer, u.logger, u.memory
	_, err = registry.Add(wc)
	return err
}

// addView declares a watch that is a view of another one, which must be there.
func (u *upstreams) addView(registry *watch.Registry, w config.Watch) error {
	of, found := registry.Watch(w.ViewOf)
	if !found {
		return fmt.Errorf("there is no watch %q", w.ViewOf)
	}
	wc := watchConfig(w)
	wc.SourceName, wc.Source, wc.Logger, wc.Memory = "view of "+w.ViewOf, viewsource.New(of, w.Definition), u.logger, u.memory
	_, err := registry.Add(wc)
	return err
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

// source returns the source of a watch, and its writer if it can be written to.
func (u *upstreams) source(s config.Source, w config.Watch) (stream.Source, stream.Writer, error) {
	switch s.Type {
	case config.Store:
		shared := u.store(s)
		return shared.Source(w.Name), shared.Writer(w.Name), nil
	case config.Host:
		source, err := host.New(hostConfig(s.Host, w))
		return source, nil, err
	case config.GRPCs:
		source, err := u.grpc(s.GRPC, w)
		return source, nil, err
	case config.Files:
		source, err := files.New(filesConfig(s.Files))
		return source, nil, err
	case config.Gateway:
		source, err := u.gateway(s, w)
		return source, nil, err
	case config.Etcd:
		source, err := etcd.New(etcdConfig(s.Etcd, w))
		return source, nil, err
	case config.Kubernetes:
		source, err := kubernetes.New(kubernetesConfig(s.Kubernetes, w, u.logger))
		return source, nil, err
	case config.Consul:
		source, err := consul.New(consulConfig(s.Consul, w))
		return source, nil, err
	case config.NATS:
		source, err := nats.New(natsConfig(s.NATS, w))
		return source, nil, err
	}
	return nil, nil, fmt.Errorf("source %s is of type %q, which is not built in", s.Name, s.Type)
}

func (u *upstreams) store(s config.Source) *store.Store {
	if u.stores[s.Name] == nil {
		u.stores[s.Name] = store.New(storeConfig(s.Store))
	}
	return u.stores[s.Name]
}

func (u *upstreams) grpc(g config.GRPCSource, w config.Watch) (stream.Source, error) {
	source, err := grpcsource.New(grpcConfig(g, w))
	if err != nil {
		return nil, err
	}
	u.open = append(u.open, source)
	return source, nil
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
