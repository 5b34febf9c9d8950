package config

import (
	"cmp"
	"crypto/tls"
	"github.com/watchtide/watchtide/stream/watch"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/source/adapter"
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
	Auth Auth `yaml:"auth"`
	// Roles are the roles of the rules of access, in the order of the file.
	Roles []Role `yaml:"roles,named"`
	// Policy is compiled from the roles and the rules of watches; nil: there are neither.
	Policy *access.Policy `yaml:"-"`
	// Stream is how streams behave, for all watches.
	Stream Stream `yaml:"stream"`
	// State keeps the watches for the next process, if it has a folder.
	State State `yaml:"state"`
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
	gateway.HTTPSettings `yaml:",inline"`
	// Listen is host:port (127.0.0.1:8080).
	Listen string `yaml:"listen,is=listen"`
	// PublicURL is the origin under which browsers reach the gateway (that of each
	// request).
	PublicURL string `yaml:"public_url,is=public url"`
	// TLS is read from "tls" {"cert_file", "key_file", "client_ca_file"}, all in PEM; nil:
	// plain text. Relative file names start at the directory of the configuration. With
	// client_ca_file, certificates of clients are asked for, and verified if given.
	TLS *tls.Config `yaml:"tls,server"`
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
	ReplicasToken adapter.Secret `yaml:"replicas_token_file"`
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
	gateway.StreamSettings `yaml:",inline"`
	// MaxViews is the most views that clients ask for at one time.
	MaxViews int `yaml:"max_views"`
	// MaxViewsPerClient is the most of them that one client asked for first.
	MaxViewsPerClient int `yaml:"max_views_per_client"`
	// MaxOrdersPerClient is the most orders of windows among these.
	MaxOrdersPerClient int `yaml:"max_orders_per_client"`
	// ViewLinger is how long such a view is kept without subscribers.
	ViewLinger time.Duration `yaml:"view_linger,min=1s"`
	// MaxCountGroups is the most groups of a count.
	MaxCountGroups int `yaml:"max_count_groups"`
	// Memory limits the memory of the watches.
	Memory Memory `yaml:"memory"`
	// History limits the deletes that a watch keeps for resuming.
	History watch.Retention `yaml:"history"`
}

// Pumps are the ways to carry streams; see gateway.Pump.
var Pumps = []string{string(gateway.PumpGoroutines), string(gateway.PumpShards)}

// Digests are the values of digest; see gateway.Digest.
var Digests = []string{string(gateway.DigestOn), string(gateway.DigestOff)}

// Compressions are the ways to send streams; see gateway.Compression.
var Compressions = []string{string(gateway.CompressionZstd), string(gateway.CompressionGzip), string(gateway.CompressionNone)}

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

// historyOr returns h, with unset fields taken from base.
func historyOr(h, base watch.Retention) watch.Retention {
	return watch.Retention{MaxAge: cmp.Or(h.MaxAge, base.MaxAge), MaxDeletes: cmp.Or(h.MaxDeletes, base.MaxDeletes), MaxBytes: cmp.Or(h.MaxBytes, base.MaxBytes)}
}

// State is the section "state".
type State struct {
	// Dir is the folder of the journal; empty: there is none.
	Dir string `yaml:"dir,required,is=directory"`
	// MaxAge is the age from which on what is kept is not used (24 h).
	MaxAge time.Duration `yaml:"max_age,min=1m"`
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
