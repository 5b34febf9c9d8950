package config

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"
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

// Source is one entry of "sources": one upstream. Only the field of its type
// is set.
type Source struct {
	// Name is the key under "sources": letters, digits, '.', '_' and '-'.
	Name string `yaml:"-"`
	// Type is one of the source types of this build ("type"; required).
	Type SourceType `yaml:"type"`

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
	// MaxValueBytes is the most bytes of one value ("max_value_bytes").
	MaxValueBytes int64 `yaml:"max_value_bytes"`
	// MaxBytes is the most bytes of all keys and values ("max_bytes").
	MaxBytes int64 `yaml:"max_bytes"`
}

// HostSource is a source of type "host": the machine on which the gateway runs.
type HostSource struct {
	// Interval is the time between two polls of the machine ("interval"), at
	// least 100ms.
	Interval time.Duration `yaml:"interval,min=100ms"`
}

// GRPCSource is a source of type "grpc": a server that implements WatchList.
type GRPCSource struct {
	// Address is a gRPC target ("address"; required): host:port or
	// dns:///host:port.
	Address string `yaml:"address,required,is=grpc address"`
	// TLS is made of "tls" {"ca_file", "cert_file", "key_file", "server_name"};
	// nil: plain text. Without ca_file the system's authorities are trusted;
	// cert_file and key_file are the client's own, for mutual TLS.
	TLS *tls.Config `yaml:"tls"`
	// Metadata is sent with every call ("metadata", and "metadata_files", whose
	// values are names of files that hold the value, read once at start).
	Metadata Metadata `yaml:"metadata,files=metadata_files,names=metadata"`
	// Keepalive is the silence after which the connection is probed
	// ("keepalive"; at least 10s; Off: never).
	Keepalive time.Duration `yaml:"keepalive,min=10s,off"`
	// StallAfter is the silence after which the upstream counts as stalled
	// ("stall_after").
	StallAfter time.Duration `yaml:"stall_after"`
	// MaxMessageBytes is the most bytes of one message ("max_message_bytes").
	MaxMessageBytes int `yaml:"max_message_bytes,bytes" why:"which is the most that gRPC takes"`
}

// Metadata is gRPC metadata. It may hold credentials, so it never shows its
// values when it is printed or logged.
type Metadata map[string]string

// Format writes how many entries there are, for every verb.
func (m Metadata) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%d hidden]", len(m)) }

// LogValue returns how many entries there are.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(m)) }
