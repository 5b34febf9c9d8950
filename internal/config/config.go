package config

import (
	"crypto/tls"
	"net/netip"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config/auth"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// Off stands for a duration that was set to 0s: none, or never.
const Off = decode.Off

// Config is the content of a configuration file, with every default filled in
// that this package defines: a zero duration or number below means "not set",
// and the package that reads it has the default.
//
// Static after Load.
type Config struct {
	// HTTP is the listener for browsers, scripts and load balancers.
	HTTP HTTP `yaml:"http"`
	// GRPC is the listener for gRPC clients.
	GRPC GRPC `yaml:"grpc"`
	// Operations is the listener for operators.
	Operations Operations `yaml:"operations"`
	// Auth says which credentials are accepted. Without it, the listeners must be on
	// loopback.
	Auth auth.Section `yaml:"auth"`
	// Roles are the roles of the rules of access, in the order of the file.
	Roles []Role `yaml:"roles,named"`
	// Policy is compiled from the roles and the rules of watches; nil: there are neither.
	Policy *access.Policy `yaml:"-"`
	// Stream is how streams behave, for all watches.
	Stream Stream `yaml:"stream"`
	// Metrics configures the metrics.
	Metrics Metrics `yaml:"metrics"`
	// Tracing says what is traced, and where spans go.
	Tracing Tracing `yaml:"tracing"`
	// Sources are the upstreams, in the order of the file.
	Sources []Source `yaml:"sources,named"`
	// Watches are what clients subscribe to, in the order of the file.
	Watches []Watch `yaml:"watches,named"`
	// Templates are the entries of "watches" that stand for many, in the order of the
	// file.
	Templates []*Template `yaml:"-"`
}

// HTTP is the section "http".
type HTTP struct {
	// Listen is host:port (127.0.0.1:8080).
	Listen string `yaml:"listen,is=listen"`
	// PublicURL is the origin under which browsers reach the gateway (that of each
	// request).
	PublicURL string `yaml:"public_url,is=public url"`
	// TLS is read from "tls" {"cert_file", "key_file", "client_ca_file"}, all in PEM; nil:
	// plain text. Relative file names start at the directory of the configuration. With
	// client_ca_file, certificates of clients are asked for, and verified if given.
	TLS *tls.Config `yaml:"tls,server"`
	// Hosts are the host names that clients may use, besides localhost and every IP
	// address (none): see gateway.Config.
	Hosts []string `yaml:"hosts,is=host"`
	// AllowedOrigins are the origins from which a browser may read (none), each as a
	// browser sends it: https://app.example.com.
	AllowedOrigins []string `yaml:"allowed_origins,is=origin"`
	// AllowedHeaders are headers that pages of these origins may send, besides those
	// that the gateway reads (none).
	AllowedHeaders []string `yaml:"allowed_headers,is=page header"`
	// TrustedProxies are the networks of proxies that are trusted to report their
	// client (none).
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// ForwardedHeader is the header in which they report it (one of
	// ForwardedHeaders).
	ForwardedHeader string `yaml:"forwarded_header,is=forwarded header"`
	// MaxConnections is the most connections of clients at one time, of all
	// listeners (what the limit on descriptors leaves).
	MaxConnections int `yaml:"max_connections"`
	// BodyBudget is how many bytes the bodies of writes may take at a time (64 MiB).
	BodyBudget int64 `yaml:"body_budget"`
	// AnswerBudget is how many bytes the answers to lists, reads and long polls may
	// take at a time (64 MiB).
	AnswerBudget int64 `yaml:"answer_budget"`
	// DeliveryReports accepts POST /v1/delivery.
	DeliveryReports bool `yaml:"delivery_reports"`
}

// ForwardedHeaders are the headers in which proxies report their client.
var ForwardedHeaders = []string{gateway.HeaderXForwardedFor, gateway.HeaderForwarded}

// DefaultGRPC is where a configuration with an empty section "grpc" listens.
const DefaultGRPC = "127.0.0.1:8082"

// GRPC is the section "grpc". Without it there is no gRPC.
type GRPC struct {
	// Listen is host:port (DefaultGRPC); empty: there is no gRPC.
	Listen string `yaml:"listen,is=listen"`
	// TLS is as in HTTP.
	TLS *tls.Config `yaml:"tls,server"`
}

// Operations is the section "operations".
type Operations struct {
	// Listen is host:port (DefaultOperations), or OperationsOff.
	Listen string `yaml:"listen,is=listen or off"`
	// Role is the role whose holders are operators on listeners that other machines can reach
	// (none).
	Role string `yaml:"role"`
	// Replicas are the operations listeners of the other replicas: see gateway.Config.
	Replicas []string `yaml:"replicas,is=replica"`
	// ReplicasToken is what the replicas are asked with (no token).
	ReplicasToken Secret `yaml:"replicas_token_file"`
	// ReplicasTLS is made of "replicas_tls", as for a source; nil: the system's authorities are
	// trusted.
	ReplicasTLS *tls.Config `yaml:"replicas_tls"`
	// FlightRecorder keeps the last seconds of an execution trace in memory.
	FlightRecorder bool `yaml:"flight_recorder"`
	// TLS is as in HTTP.
	TLS *tls.Config `yaml:"tls,server"`
}

// DefaultOperations is the default address for operators. If it is taken, as by
// another gateway on this machine, any free port is used.
const DefaultOperations = "127.0.0.1:8081"

// Stream is the section "stream".
type Stream struct {
	// Heartbeat is the silence after which a comment line is sent.
	Heartbeat time.Duration `yaml:"heartbeat,min=1ms"`
	// WriteTimeout is how long a write may make no progress before the client counts
	// as gone.
	WriteTimeout time.Duration `yaml:"write_timeout,min=1ms"`
	// MinRate is how many bytes a second a client must take, on average over 30 s (4
	// KiB; negative: none).
	MinRate int64 `yaml:"min_rate,off"`
	// Retry is the time after which a client should reconnect; each connection gets
	// it with jitter.
	Retry time.Duration `yaml:"retry,min=1ms"`
	// MaxAge is how long a stream lasts before the client is asked to reconnect, so
	// that load spreads over replicas again.
	MaxAge time.Duration `yaml:"max_age,off"`
	// DrainDelay is how long everything is still served at shutdown while /readyz
	// already fails (Off: not at all).
	DrainDelay time.Duration `yaml:"drain_delay,off"`
	// Drain is the time over which the goodbyes are spread at shutdown (Off: all at
	// once).
	Drain time.Duration `yaml:"drain,off"`
	// AheadWait is how long to wait for a position that is ahead of this replica.
	AheadWait time.Duration `yaml:"ahead_wait"`
	// PrimeWait is how long a list, or a stream with until=, waits for the first
	// snapshot before it is answered with 503.
	PrimeWait time.Duration `yaml:"prime_wait"`
	// StaleAllowed is how long a required watch may be out of sync before /readyz
	// fails, and how long another one is waited for at start.
	StaleAllowed time.Duration `yaml:"stale_allowed"`
	// MaxSubscribers is the most streams at one time (no limit).
	MaxSubscribers int `yaml:"max_subscribers"`
	// SnapshotBudget is how many bytes of snapshots may be on their way at one time
	// (64 MiB).
	SnapshotBudget int64 `yaml:"snapshot_budget"`
	// MaxSubscribersPerClient is the most of them from one address (no limit).
	MaxSubscribersPerClient int `yaml:"max_subscribers_per_client"`
	// MaxSubscribersPerWatch is the most of them of one watch (no limit).
	MaxSubscribersPerWatch int `yaml:"max_subscribers_per_watch"`
	// MaxViews is the most views that clients ask for at one time.
	MaxViews int `yaml:"max_views"`
	// MaxViewsPerClient is the most of them that one client asked for first.
	MaxViewsPerClient int `yaml:"max_views_per_client"`
	// ViewLinger is how long such a view is kept without subscribers.
	ViewLinger time.Duration `yaml:"view_linger,min=1s"`
	// Memory limits the memory of the watches.
	Memory Memory `yaml:"memory"`
	// Pump selects how streams are carried (one of Pumps).
	Pump string `yaml:"pump,is=pump"`
	// Compression is how streams are sent to clients that ask for it (one of
	// Compressions).
	Compression string `yaml:"compression,is=compression"`
	// CompressionCache is how many bytes of compressed events are kept.
	CompressionCache int64 `yaml:"compression_cache"`
	// History limits the deletes that a watch keeps for resuming.
	History History `yaml:"history"`
}

// Pumps are the ways to carry streams; see gateway.Pump.
var Pumps = []string{string(gateway.PumpGoroutines), string(gateway.PumpShards)}

// Compressions are the ways to send streams; see gateway.Compression.
var Compressions = []string{string(gateway.CompressionGzip), string(gateway.CompressionNone)}

// Memory is the section "memory" of "stream".
type Memory struct {
	// Watch is the most bytes of one watch without its own "memory" (no limit).
	Watch int64 `yaml:"watch,min=1MiB"`
	// Total is the most bytes of all watches together (three quarters of the memory
	// limit of the process, if it has one).
	Total int64 `yaml:"total,min=1MiB"`
	// Views is the most bytes of all views that clients ask for.
	Views int64 `yaml:"views,min=1MiB"`
}

// History is the section "history" of "stream", and of a watch.
type History struct {
	// MaxAge is how long a deletion is remembered.
	MaxAge time.Duration `yaml:"max_age"`
	// MaxDeletes is how many deletions are remembered.
	MaxDeletes int `yaml:"max_deletes"`
	// MaxBytes is how many bytes of deletions are remembered.
	MaxBytes int64 `yaml:"max_bytes"`
}

// or returns h, with unset fields taken from base.
func (h History) or(base History) History {
	if h.MaxAge == 0 {
		h.MaxAge = base.MaxAge
	}
	if h.MaxDeletes == 0 {
		h.MaxDeletes = base.MaxDeletes
	}
	if h.MaxBytes == 0 {
		h.MaxBytes = base.MaxBytes
	}
	return h
}

// Metrics is the section "metrics".
type Metrics struct {
	// Enabled reports whether operators are served /metrics and /v1/subscribers
	// (true).
	Enabled bool `yaml:"enabled"`
}

// Default is the configuration of an empty file: it listens on loopback and
// has no sources and no watches.
func Default() *Config {
	return &Config{
		HTTP:       HTTP{Listen: "127.0.0.1:8080"},
		Operations: Operations{Listen: DefaultOperations},
		Metrics:    Metrics{Enabled: true},
		Tracing:    Tracing{RequestsPerSecond: 10, ClientRequestsPerSecond: 10, SlowSnapshot: 5 * time.Second, SlowCommit: time.Second},
	}
}
