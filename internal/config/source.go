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
	Name string
	// Type is one of the source types of this build ("type"; required).
	Type SourceType

	Store   StoreSource
	Host    HostSource
	GRPC    GRPCSource
	Files   FilesSource
	Etcd    EtcdSource
	Gateway GatewaySource
	NATS    NATSSource
	Consul  ConsulSource

	Kubernetes KubernetesSource
}

// StoreSource is a source of type "store": resources in memory, writable over
// HTTP and gRPC.
type StoreSource struct {
	// MaxValueBytes is the most bytes of one value ("max_value_bytes").
	MaxValueBytes int64
	// MaxBytes is the most bytes of all keys and values ("max_bytes").
	MaxBytes int64
}

// HostSource is a source of type "host": the machine on which the gateway runs.
type HostSource struct {
	// Interval is the time between two polls of the machine ("interval"), at
	// least 100ms.
	Interval time.Duration
}

// GRPCSource is a source of type "grpc": a server that implements WatchList.
type GRPCSource struct {
	// Address is a gRPC target ("address"; required): host:port or
	// dns:///host:port.
	Address string
	// TLS is made of "tls" {"ca_file", "cert_file", "key_file", "server_name"};
	// nil: plain text. Without ca_file the system's authorities are trusted;
	// cert_file and key_file are the client's own, for mutual TLS.
	TLS *tls.Config
	// Metadata is sent with every call ("metadata", and "metadata_files", whose
	// values are names of files that hold the value, read once at start).
	Metadata Metadata
	// Keepalive is the silence after which the connection is probed
	// ("keepalive"; at least 10s; Off: never).
	Keepalive time.Duration
	// StallAfter is the silence after which the upstream counts as stalled
	// ("stall_after").
	StallAfter time.Duration
	// MaxMessageBytes is the most bytes of one message ("max_message_bytes").
	MaxMessageBytes int
}

// Metadata is gRPC metadata. It may hold credentials, so it never shows its
// values when it is printed or logged.
type Metadata map[string]string

// Format writes how many entries there are, for every verb.
func (m Metadata) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%d hidden]", len(m)) }

// LogValue returns how many entries there are.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(m)) }

// Watch is one entry of "watches": one named collection at one source.
type Watch struct {
	// Name is the key under "watches": 1 to 64 letters, digits, '.', '_' and '-'.
	Name string
	// Source is the name of an entry of "sources" ("source"; required).
	Source string
	// Prime reports whether the watch is started at start, and /readyz waits for
	// it ("prime"; true); else its first subscriber starts it.
	Prime bool
	// Required reports whether /readyz fails while the watch is out of sync for
	// too long ("required"; false).
	Required bool
	// Linger is how long a watch that is not primed continues after its
	// last subscriber ("linger").
	Linger time.Duration
	// History is "history"; unset fields are as in "stream".
	History History
	// Memory is the most bytes that the watch may hold ("memory"; as in "stream").
	Memory int64
	// SnapshotTimeout is how long a snapshot may take before the status of the
	// watch says so ("snapshot_timeout").
	SnapshotTimeout time.Duration

	// Collection is which part of the machine is watched ("collection"; required for
	// a source of type host, and for no other): processes, interfaces or mounts.
	Collection string
	// Watch is the upstream's name for the watch ("watch"; only for sources of
	// type grpc and gateway; the watch's own name).
	Watch string
	// Prefix narrows the watch to keys that begin with it ("prefix"; only for sources of
	// type grpc, gateway and etcd; for etcd it is not part of the keys).
	Prefix string
	// Bucket is the name of the bucket ("bucket"; required for a source of type
	// nats, and for no other).
	Bucket string
	// Keys is a pattern of the keys that are watched ("keys"; only for a source of
	// type nats).
	Keys string
	// Kubernetes specifies which objects are followed (required for a source of
	// type kubernetes, and for no other).
	Kubernetes KubernetesWatch
	// Consul specifies which resources are followed (required for a source of
	// type consul, and for no other).
	Consul ConsulWatch
}
