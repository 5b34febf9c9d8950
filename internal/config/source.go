package config

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/etcd"
	"github.com/watchtide/watchtide/internal/source/files"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"github.com/watchtide/watchtide/internal/source/nats"
	"github.com/watchtide/watchtide/internal/source/postgres"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream/store"
)

// SourceType is the "type" of a source.
type SourceType string

// The source types of this build.
const (
	Store   SourceType = "store"
	Host    SourceType = "host"
	GRPCs   SourceType = "grpc"
	Files   SourceType = "files"
	Etcd    SourceType = "etcd"
	Gateway SourceType = "gateway"
	NATS    SourceType = "nats"
	Consul  SourceType = "consul"

	Kubernetes SourceType = "kubernetes"
	Postgres   SourceType = "postgres"
)

// View stands for the type of the source of a watch that is a view of another one. Such a watch
// has no source in the configuration.
const View SourceType = "view"

// Source is one entry of "sources": one upstream. Only the field of its type
// is set.
type Source struct {
	// Name is the key under "sources": letters, digits, '.', '_' and '-'.
	Name string `yaml:"-"`
	// Type is one of the source types of this build.
	Type SourceType `yaml:"type"`
	// RetryMax is the longest wait between two attempts to reach the upstream (30 s).
	RetryMax time.Duration `yaml:"retry_max,min=100ms"`
	// Contents is a hash of the files that were read into the section, without those that the
	// source reads again for each connection. Empty: there are none.
	Contents string `yaml:"-"`

	Store      store.Config         `yaml:"-"`
	Host       host.Config          `yaml:"-"`
	GRPC       grpcsource.Config    `yaml:"-"`
	Files      files.Config         `yaml:"-"`
	Etcd       etcd.Config          `yaml:"-"`
	Gateway    gatewaysource.Config `yaml:"-"`
	NATS       nats.Config          `yaml:"-"`
	Consul     consul.Config        `yaml:"-"`
	Kubernetes kubernetes.Config    `yaml:"-"`
	Postgres   postgres.Config      `yaml:"-"`
}

// sections returns the keys of each source type of this build, apart from "type".
func (s *Source) sections() map[SourceType]any {
	return map[SourceType]any{
		Store: &s.Store, Host: &s.Host, GRPCs: &s.GRPC, Files: &s.Files, Etcd: &s.Etcd,
		Gateway: &s.Gateway, NATS: &s.NATS, Consul: &s.Consul, Kubernetes: &s.Kubernetes,
		Postgres: &s.Postgres,
	}
}

// read reads the keys of the type, and records it. Those of other types are
// not checked.
func (s *Source) read(d *decoder, v decode.Value, _ decode.Key) {
	d.declared[s.Name] = ""
	d.Contents = ""
	defer func() { s.Contents = d.Contents }()
	sections := s.sections()
	var types []string
	for t := range sections {
		types = append(types, string(t))
	}
	entries, typ, ok := d.leading(v, "type", decode.Text{Want: "the name of a source type"}, suggest.Sentence("", types))
	if !ok || !d.CheckWord(typ, "this build has no source type", types) {
		return
	}
	s.Type = SourceType(typ.Expanded)
	d.declared[s.Name] = s.Type
	section := sections[s.Type]
	keys := d.KeysOf(section)
	for i := range keys {
		keys[i].Advice = fmt.Sprintf(", which a source of type %s must have", s.Type)
	}
	errors := len(d.Errs)
	d.Fill(section, v, entries, append(keys, d.KeysOf(s)...))
	d.checkStorePath(s)
	if s.Type == Consul && len(d.Errs) == errors {
		d.consuls[s.Name] = s.Consul
	}
}

// checkStorePath reports a store that would share its file with another one.
func (d *decoder) checkStorePath(s *Source) {
	if s.Store.Path == "" {
		return
	}
	path := filepath.Clean(s.Store.Path)
	if other, taken := d.stores[path]; taken {
		d.Errorf(d.Given[&s.Store.Path], "the source %q has this path already; want a file for each store, or one source for the watches of both", other)
		return
	}
	d.stores[path] = s.Name
}

// leading returns the entries of a source or a watch, and the text of the key that
// determines the meaning of the others. false: an error was added.
func (d *decoder) leading(v decode.Value, key string, kind decode.Text, advice string) (entries []decode.Entry, lead decode.Scalar, ok bool) {
	errors := len(d.Errs)
	entries, _ = d.Entries(v)
	for _, e := range entries {
		if e.Name == key {
			lead, ok = d.TextOf(e.Value, kind)
			return entries, lead, ok
		}
	}
	for _, other := range entries {
		if suggest.Nearest(other.Name, []string{key}) != "" {
			d.UnknownKey(other, v.Path, []string{key})
			return nil, decode.Scalar{}, false
		}
	}
	if len(d.Errs) == errors {
		d.Errorf(v.AtKey(), "%s is missing; %s", key, advice)
	}
	return nil, decode.Scalar{}, false
}
