package config

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/suggest"
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

	Store   StoreSource   `yaml:"-"`
	Host    HostSource    `yaml:"-"`
	GRPC    GRPCSource    `yaml:"-"`
	Files   FilesSource   `yaml:"-"`
	Etcd    EtcdSource    `yaml:"-"`
	Gateway GatewaySource `yaml:"-"`
	NATS    NATSSource    `yaml:"-"`
	Consul  ConsulSource  `yaml:"-"`

	Kubernetes KubernetesSource `yaml:"-"`
}

// sections returns the keys of each source type of this build, apart from "type".
func (s *Source) sections() map[SourceType]any {
	return map[SourceType]any{
		Store: &s.Store, Host: &s.Host, GRPCs: &s.GRPC, Files: &s.Files, Etcd: &s.Etcd,
		Gateway: &s.Gateway, NATS: &s.NATS, Consul: &s.Consul, Kubernetes: &s.Kubernetes,
	}
}

// StoreSource is a source of type "store": resources in memory, writable over
// HTTP and gRPC.
type StoreSource struct {
	// MaxValueBytes is the most bytes of one value.
	MaxValueBytes int64 `yaml:"max_value_bytes"`
	// MaxBytes is the most bytes of all keys and values.
	MaxBytes int64 `yaml:"max_bytes"`
}

// HostSource is a source of type "host": the machine on which the gateway runs.
type HostSource struct {
	// Interval is the time between two polls of the machine.
	Interval time.Duration `yaml:"interval,min=100ms"`
}

// GRPCSource is a source of type "grpc": a server that implements WatchList.
type GRPCSource struct {
	// Address is a gRPC target: host:port or dns:///host:port.
	Address string `yaml:"address,required,is=grpc address"`
	// TLS is read from "tls"; nil: plain text. Without ca_file in it the system's authorities
	// are trusted; cert_file and key_file are the client's own, for mutual TLS.
	TLS *tls.Config `yaml:"tls"`
	// Metadata is sent with every call. The files of metadata_files are read at start.
	Metadata Metadata `yaml:"metadata,files=metadata_files,names=metadata"`
	// TokenFile is the name of a file that holds a token. It is read for each call.
	TokenFile string `yaml:"token_file,is=file of a secret"`
	// Keepalive is the silence after which the connection is probed (Off: never).
	Keepalive time.Duration `yaml:"keepalive,min=10s,off"`
	// StallAfter is the silence after which the upstream counts as stalled.
	StallAfter time.Duration `yaml:"stall_after"`
	// MaxMessageBytes is the most bytes of one message.
	MaxMessageBytes int `yaml:"max_message_bytes,bytes" why:"which is the most that gRPC takes"`
}

// Metadata is gRPC metadata. It may hold credentials, so it never shows its
// values when it is printed or logged.
type Metadata map[string]string

// Format writes how many entries there are, for every verb.
func (m Metadata) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%d hidden]", len(m)) }

// LogValue returns how many entries there are.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(m)) }

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
	d.Fill(section, v, entries, append(keys, d.KeysOf(s)...))
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
