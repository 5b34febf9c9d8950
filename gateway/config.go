package gateway

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/epoll"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/headers"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// DefaultPrimeWait is Config.PrimeWait if that is 0.
const DefaultPrimeWait = 5 * time.Second

// Config configures a Gateway. The zero value of every field except Registry is
// its documented default.
type Config struct {
	// Registry holds the watches, and the templates that make watches. Required. The
	// gateway neither adds watches nor closes it.
	Registry *watch.Registry
	// Views limits the views that clients ask for.
	Views ViewLimits
	// Access says who may do what. Default: everybody may do everything.
	Access *Access
	// Logger receives messages for an operator. Default: slog.Default().
	Logger *slog.Logger

	StreamSettings
	HTTPSettings

	// AfterRush is called in a goroutine of its own each time many streams have
	// arrived, and then few for a second; only those that PumpShards carries count.
	// Being accepted leaves behind several times the memory that a stream needs from
	// then on, and streams that only wait make no garbage that would trigger the next
	// collection. So a program that serves little else may call debug.FreeOSMemory
	// here. Default: nothing is called.
	AfterRush func()

	// Uncompressed are the names of the watches and templates whose streams are not compressed.
	// A stream of several watches is not compressed if one of them is listed.
	Uncompressed []string

	// Metrics serves /metrics, /v1/subscribers and /v1/series to operators: see
	// OperationsHandler. Serve records the figures of /v1/series.
	Metrics bool
	// Replicas are the addresses of the operations listeners of the other replicas, and may
	// include this one: see ValidReplica. Operators are shown how they are.
	Replicas []string
	// ReplicasToken is sent to the replicas as Authorization: Bearer. Default: none is sent. It is
	// never logged, and in no answer.
	ReplicasToken string
	// ReplicasTLS has the authorities and the client certificate for the replicas whose address
	// begins with https. Default: the authorities of the system, and no certificate.
	ReplicasTLS *tls.Config
	// Certificates are those of the listeners, by listener ("http", "grpc",
	// "operations"). Only the metrics use them, to show when they expire.
	Certificates map[string]*x509.Certificate
	// Stores returns how the disks of durable stores are, by the name of their source. Only the metrics
	// use it. Default: there are none.
	Stores func() map[string]stream.DiskStats
	// Cluster returns figures of what the cluster of Access is asked, by kind of question. Only the metrics
	// use it. Default: no cluster is asked.
	Cluster func() map[string]cluster.Stats
	// Journal returns how the journal of the watches is. Only the metrics use it. Default: there is none.
	Journal func() watch.JournalStats
	// Profiles, if not nil, is served below /debug/pprof/ on Listeners.Operations:
	// for instance, http.DefaultServeMux of a program that imports net/http/pprof.
	Profiles http.Handler
	// Tracing says what is traced. Default: nothing.
	Tracing *Tracing
	// Instance names this process wherever its figures are served, so that the
	// figures of two replicas are not confused: 1 to 64 letters, digits, '_' and '-'.
	// Default: random.
	Instance string
	// Version is the version of the program, for /healthz and the like. Default:
	// "dev".
	Version string
	// Commit is what the program was built from, for its metrics. Default: "unknown".
	Commit string

	// engine makes the views; Serve closes it. Only tests set it.
	engine viewEngine
}

// StreamSettings are how streams behave, for all watches: the section "stream" of a configuration
// file. The zero value of a field is its default.
type StreamSettings struct {
	// Heartbeat is the longest silence on a stream. Default: 15 s.
	Heartbeat time.Duration `yaml:"heartbeat,min=1ms"`
	// WriteTimeout ends a stream once no byte could be written to its client for that
	// long. Default: 10 s.
	WriteTimeout time.Duration `yaml:"write_timeout,min=1ms"`
	// MinRate is how many bytes per second a client must read of an answer, on
	// average over 30 s; a slower client is cut off. A stream that is slower during a
	// snapshot or while it catches up continues with the newest state instead.
	// Default: 4 KiB. Negative: none.
	MinRate int64 `yaml:"min_rate,off"`
	// Retry is the base of the hint that tells clients when to reconnect; each
	// connection gets its own, between half and one and a half times this
	// value. Default: 1.5 s.
	Retry time.Duration `yaml:"retry,min=1ms"`
	// MaxAge ends a stream of that age, plus or minus a random 10 % for each stream,
	// so that load spreads over the replicas again. Default: 30 min. Negative: never.
	MaxAge time.Duration `yaml:"max_age,off"`
	// PrimeWait is how long a request that needs the whole state waits for a watch
	// that is not primed yet. Default: DefaultPrimeWait.
	PrimeWait time.Duration `yaml:"prime_wait"`
	// AheadWait is how long a position ahead of this replica is held until the
	// replica reaches it. Default: 3 s.
	AheadWait time.Duration `yaml:"ahead_wait"`
	// StaleAllowed is how long a required watch may be out of sync before the gateway
	// reports that it is not ready, and how long it waits at startup for a watch that
	// is not required. Default: 5 min.
	StaleAllowed time.Duration `yaml:"stale_allowed"`
	// DrainDelay is how long the gateway keeps serving once it begins to drain, with
	// /readyz already failing, so that load balancers can stop sending clients.
	// Default: 2 s. Negative: none.
	DrainDelay time.Duration `yaml:"drain_delay,off"`
	// Drain is the time in which the clients of open streams move to other replicas at
	// shutdown: the goodbyes are spread over it, less one and a half times Retry, but at
	// least over half of it. Default: 10 s. Negative: all at once.
	Drain time.Duration `yaml:"drain,off"`
	// MaxSubscribers is the most streams that may be open at the same time, over all
	// transports; further streams are refused as overload. 0: no limit.
	MaxSubscribers int `yaml:"max_subscribers"`
	// MaxSubscribersPerClient is the most streams of one client: an IPv4 address, or
	// an IPv6 network of /64. 0: no limit, since many clients may share an address:
	// those behind one NAT, or one proxy that is not among TrustedProxies.
	MaxSubscribersPerClient int `yaml:"max_subscribers_per_client"`
	// MaxSubscribersPerWatch is the most streams of one watch; a stream of several
	// watches counts for each. 0: no limit.
	MaxSubscribersPerWatch int `yaml:"max_subscribers_per_watch"`
	// SnapshotBudget is how many bytes of snapshots and of long catch-ups may be on
	// their way to clients at the same time, over all transports; further ones wait
	// for their turn. Default: 64 MiB.
	SnapshotBudget int64 `yaml:"snapshot_budget"`
	// Pump selects what carries the streams. Default: PumpShards.
	Pump Pump `yaml:"pump,is=pump"`
	// Compression selects how streams and lists are sent to clients that ask for it in
	// Accept-Encoding. Default: CompressionZstd.
	Compression Compression `yaml:"compression,is=compression"`
	// Digest selects whether clients can verify and resume by digest. Default: DigestOn.
	Digest Digest `yaml:"digest,is=digest"`
	// CompressionCache is how many bytes of compressed events are kept, so that
	// events for several clients are compressed once; an eighth of it more is for lists. Default: 32 MiB.
	CompressionCache int64 `yaml:"compression_cache"`
}

// DefaultStreamSettings returns the default of each setting.
func DefaultStreamSettings() StreamSettings { return StreamSettings{}.withDefaults() }

// HTTPSettings are about the requests of clients: the section "http" of a configuration file. The zero
// value of a field is its default.
type HTTPSettings struct {
	// MaxConnections is the most client connections that Serve has open at the same
	// time, over all listeners. Beyond it, HTTP connections that wait for their next
	// request are closed, the longest waiting first; after that only /healthz and
	// /readyz are answered. The default, which is also the maximum, is what the limit
	// on descriptors leaves; the process must not reach that limit.
	MaxConnections int `yaml:"max_connections"`
	// MaxHandshakes is the most TLS handshakes that go on at the same time, over all listeners, and never more than for half of
	// the connections. Beyond it the one that has lasted longest is ended. Default: 1024.
	MaxHandshakes int `yaml:"max_handshakes"`
	// MaxHandshakesPerClient is the most of one address that is no trusted proxy. Any more are refused. Default: 256.
	MaxHandshakesPerClient int `yaml:"max_handshakes_per_client"`
	// Hosts are the names under which clients may address the gateway, besides
	// localhost and every IP address: host names without a port, "*.example.com" for
	// every name below example.com, or "*" for any name. A request for any other name
	// is refused, since a foreign web page could have made the name point here (DNS
	// rebinding). /healthz and /readyz answer for every name.
	Hosts []string `yaml:"hosts,is=host"`
	// AllowedOrigins lists the origins of other web sites that may read the API from
	// a browser, each as a browser sends it: "https://app.example.com".
	AllowedOrigins []string `yaml:"allowed_origins,is=origin"`
	// AllowedHeaders are headers that pages of AllowedOrigins may send, besides those that
	// the gateway reads and those of W3C Trace Context and Baggage: what a proxy in front
	// reads, or a library of the page adds. Neither "*", nor headers in which proxies report
	// their client.
	AllowedHeaders []string `yaml:"allowed_headers,is=page header"`
	// TrustedProxies are the networks whose ForwardedHeader identifies the client of
	// a request. None: the client is the peer that opened the connection.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// ForwardedHeader is the header to which the trusted proxies add the address of
	// their client: HeaderXForwardedFor, or HeaderForwarded (RFC 7239). Only one is
	// read, since a client could send the one that its proxy does not know. Default:
	// HeaderXForwardedFor.
	ForwardedHeader string `yaml:"forwarded_header,is=forwarded header"`
	// BodyBudget is how many bytes the bodies of writes may take at the same time,
	// over all transports, a quarter of it for one client; further bodies are
	// answered with 503. Default: 64 MiB.
	BodyBudget int64 `yaml:"body_budget"`
	// AnswerBudget is how many bytes the answers to lists, reads and long polls may
	// take at the same time, over all transports, a quarter of it for one client. An
	// answer counts from before it is assembled until it is written; further ones
	// wait, and are answered with 503 if they wait too long. Default: 64 MiB.
	AnswerBudget int64 `yaml:"answer_budget"`
	// DeliveryReports accepts reports of browsers on when they have painted a change, for
	// the metrics; see POST /v1/delivery.
	DeliveryReports bool `yaml:"delivery_reports"`
}

// DefaultHTTPSettings returns the default of each setting.
func DefaultHTTPSettings() HTTPSettings { return HTTPSettings{}.withDefaults() }

// ValidReplica reports whether text is the address of an operations listener, such as
// http://10.0.0.7:8081, or of all that a name has: dns+http://watchtide-headless:8081. There is
// neither a path nor a credential in it.
func ValidReplica(text string) bool { return introspection.ValidAddress(text) }

// SecureReplica reports whether the replica at a valid address is asked over TLS.
func SecureReplica(address string) bool { return introspection.IsSecure(address) }

// Access says who may do what.
//
// Static after construction.
type Access struct {
	// Credentials says which credentials are accepted. The gateway sets Client,
	// ClientOfCall, Revocations and Log.
	Credentials credential.Config
	// Revoked is the name of a watch whose resources are revocations; see
	// access.Principal.RevocationKeys. Empty: nothing can be revoked.
	Revoked string
	// Policy says what principals may see and change. Nobody can see a watch without rules.
	// Required.
	Policy *access.Policy
	// Rights are what a Kubernetes cluster lets its users read, for the watches about which Policy lets it
	// decide. Default: nobody may read these.
	Rights *cluster.Rights
	// OperationsRole is the role whose holders are operators for the public handler; empty:
	// nobody is.
	OperationsRole string
	// Audit gets a line of JSON for each decision, from one goroutine at a time; see
	// docs/access.md. Requests do not wait for it: lines that it does not take in time are lost,
	// and counted. If it is an io.Closer, it is closed when another one replaces it, or when
	// Serve ends. Nil: nothing is written.
	Audit io.Writer
	// Limits are the limits of one principal.
	Limits PrincipalLimits
}

// PrincipalLimits are the limits of one principal, over all its addresses. A principal is a
// mechanism, an issuer and a name: the section "limits" of "auth" in a configuration file. The zero
// value of each field is its default.
type PrincipalLimits struct {
	// Streams is the maximum number of open streams, long polls and calls of WatchList. Clients
	// without a credential are limited by address only: see MaxSubscribersPerClient. Default:
	// 10,000.
	Streams int `yaml:"streams"`
	// RequestsPerSecond is the maximum number of requests and calls per second, on average over
	// 10 s. Requests without a credential count for their address, or its IPv6 network of /64.
	// Default: 1,000.
	RequestsPerSecond int `yaml:"requests_per_second"`
}

// quotas returns the limits of principals, with their defaults.
func (c Config) quotas() limits.QuotaLimits {
	if c.Access == nil {
		return limits.QuotaLimits{}
	}
	l := c.Access.Limits
	return limits.QuotaLimits{Streams: cmp.Or(l.Streams, 10_000), RequestsPerSecond: cmp.Or(l.RequestsPerSecond, 1000)}
}

// ViewLimits are the limits of all views that clients ask for with a prefix, labels, a filter or
// fields, or because of rules. Clients that ask for the same view share it. The zero value of each
// field is its default.
type ViewLimits struct {
	// Max is the maximum number of views, those included that are kept for a while without
	// subscribers. Default: 20,000.
	Max int
	// MaxPerClient is the maximum number of views that exist because one client was the first to
	// ask for them. Default: a quarter of Max.
	MaxPerClient int
	// MaxOrdersPerClient is the maximum number of orders of windows among these. Default: a tenth of
	// MaxPerClient.
	MaxOrdersPerClient int
	// MaxBytes is the maximum memory of all views, beside that of watches. Default: 256 MiB.
	MaxBytes int64
	// Linger is how long a view is kept without subscribers. Default: 30 s.
	Linger time.Duration
	// MaxGroups is the maximum number of groups of a count. Counts are views otherwise. Default: 1,000.
	MaxGroups int
}

// check returns an error that names the first invalid field.
func (l ViewLimits) check() error {
	if l.Max < 0 || l.MaxPerClient < 0 || l.MaxOrdersPerClient < 0 || l.MaxBytes < 0 || l.Linger < 0 || l.MaxGroups < 0 {
		return fmt.Errorf("gateway.Config: Views is %+v: want positive numbers, or 0 for the defaults", l)
	}
	return nil
}

// viewEngine makes the views that clients ask for.
type viewEngine interface {
	// Open returns the view of a watch that a definition selects. The view has the name
	// of the watch, and lives as long as somebody follows it. The error is a views.Refusal
	// if a limit is reached.
	Open(w *watch.Watch, d *view.Definition, r views.Request) (*watch.Watch, error)
	// Count returns the counts of a watch or of a view that Open has returned. The error is a
	// views.Refusal if a limit is reached.
	Count(w *watch.Watch, g *view.Grouping, r views.Request) (*watch.Watch, error)
	// Shared returns the definition that all requests for a view share, given the view and the
	// definition that Open was given.
	Shared(of *watch.Watch, d *view.Definition) *view.Definition
	// SharedGrouping returns the grouping that all requests for counts share, given the counts and the grouping that
	// Count was given.
	SharedGrouping(of *watch.Watch, g *view.Grouping) *view.Grouping
	// Stats returns figures for the metrics.
	Stats() views.Stats
	// Largest returns the n views of a watch that hold the most; of all watches if it has
	// no name.
	Largest(n int, watch string) []views.Listed
	// Reconfigure changes the limits.
	Reconfigure(views.Config)
	// Close ends all views.
	Close()
}

// The headers in which proxies name the client that they forward for.
const (
	// HeaderXForwardedFor is sent by nearly all proxies: addresses separated by
	// commas, to which each proxy appends the one that its request came from.
	HeaderXForwardedFor = "X-Forwarded-For"
	// HeaderForwarded is the standard one (RFC 7239).
	HeaderForwarded = "Forwarded"
)

// Pump is a way to carry streams.
type Pump string

const (
	// PumpShards carries HTTP/1.1 and HTTP/2, with TLS or without, that Serve accepted on Linux with a few
	// goroutines in total, two more for each connection of HTTP/2, and everything else as PumpGoroutines does.
	PumpShards Pump = "shards"
	// PumpGoroutines carries each stream in its own goroutine.
	PumpGoroutines Pump = "goroutines"
)

// Digest says whether streams have digests.
type Digest string

const (
	// DigestOn sends them to clients that ask.
	DigestOn Digest = "on"
	// DigestOff answers like a gateway that is older than digests, so that clients begin again with a
	// snapshot where their position cannot be resumed. Open streams go on without digests.
	DigestOff Digest = "off"
)

// Compression is the best content coding in which answers are sent.
type Compression string

const (
	// CompressionZstd compresses what ends with a snapshot (RFC 8878), and everything as CompressionGzip
	// does for clients that prefer that.
	CompressionZstd Compression = "zstd"
	// CompressionGzip compresses streams and lists (RFC 1952).
	CompressionGzip Compression = "gzip"
	// CompressionNone sends them as they are.
	CompressionNone Compression = "none"
)

// listCache is how many bytes of compressed lists are kept.
func (c Config) listCache() int64 { return c.CompressionCache / 8 }

// Sockets returns the sockets of the system, unless the configuration excludes
// them.
func (c Config) sockets(of *netconn.Connections) epoll.Sockets {
	if c.Pump == PumpGoroutines {
		return nil
	}
	return epoll.SystemSockets(of)
}

// check returns an error that names the first invalid field.
func (c Config) check() error {
	if c.Registry == nil {
		return fmt.Errorf("gateway.Config: Registry is missing")
	}
	if c.Access != nil && c.Access.Policy == nil {
		return fmt.Errorf("gateway.Config: Access.Policy is missing: want a policy, which may be empty")
	}
	if c.Access != nil && (c.Access.Limits.Streams < 0 || c.Access.Limits.RequestsPerSecond < 0) {
		return fmt.Errorf("gateway.Config: Access.Limits is %+v: want positive numbers, or 0 for the defaults", c.Access.Limits)
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"Heartbeat", c.Heartbeat}, {"WriteTimeout", c.WriteTimeout}, {"Retry", c.Retry},
		{"PrimeWait", c.PrimeWait}, {"AheadWait", c.AheadWait}, {"StaleAllowed", c.StaleAllowed},
	} {
		if f.d < 0 {
			return fmt.Errorf("gateway.Config: %s is %s: want a positive duration, or 0 for the default", f.name, f.d)
		}
	}
	if err := cmp.Or(c.checkAdmission(), c.Views.check()); err != nil {
		return err
	}
	if err := c.checkBudgets(); err != nil {
		return err
	}
	if c.Pump != "" && c.Pump != PumpShards && c.Pump != PumpGoroutines {
		return fmt.Errorf("gateway.Config: Pump is %q: want %s or %s", c.Pump, PumpShards, PumpGoroutines)
	}
	if c.Digest != "" && c.Digest != DigestOn && c.Digest != DigestOff {
		return fmt.Errorf("gateway.Config: Digest is %q: want %s or %s", c.Digest, DigestOn, DigestOff)
	}
	if c.Compression != "" && !slices.Contains([]Compression{CompressionZstd, CompressionGzip, CompressionNone}, c.Compression) {
		return fmt.Errorf("gateway.Config: Compression is %q: want %s, %s or %s", c.Compression, CompressionZstd, CompressionGzip, CompressionNone)
	}
	if c.Instance != "" && !validInstance.MatchString(c.Instance) {
		return fmt.Errorf("gateway.Config: Instance is %q: want 1 to 64 letters, digits, '_' and '-'", c.Instance)
	}
	if err := c.Tracing.check(); err != nil {
		return err
	}
	return cmp.Or(checkOrigins(c.AllowedOrigins), checkHeaders(c.AllowedHeaders))
}

var validInstance = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkBudgets is the part of check for numbers of bytes.
func (c Config) checkBudgets() error {
	for _, f := range []struct {
		name  string
		bytes int64
	}{
		{"SnapshotBudget", c.SnapshotBudget}, {"BodyBudget", c.BodyBudget}, {"AnswerBudget", c.AnswerBudget}, {"CompressionCache", c.CompressionCache},
	} {
		if f.bytes < 0 {
			return fmt.Errorf("gateway.Config: %s is %d: want a positive number of bytes, or 0 for the default", f.name, f.bytes)
		}
	}
	return nil
}

// checkAdmission is the part of check for the fields that decide which clients are
// admitted.
func (c Config) checkAdmission() error {
	for _, f := range []struct {
		name  string
		limit int
	}{
		{"MaxConnections", c.MaxConnections}, {"MaxHandshakes", c.MaxHandshakes}, {"MaxHandshakesPerClient", c.MaxHandshakesPerClient}, {"MaxSubscribers", c.MaxSubscribers}, {"MaxSubscribersPerClient", c.MaxSubscribersPerClient},
		{"MaxSubscribersPerWatch", c.MaxSubscribersPerWatch},
	} {
		if f.limit < 0 {
			return fmt.Errorf("gateway.Config: %s is %d: want a positive number, or 0 for no limit", f.name, f.limit)
		}
	}
	for _, p := range c.TrustedProxies {
		if !p.IsValid() {
			return fmt.Errorf("gateway.Config: TrustedProxies: %v is no network", p)
		}
	}
	if h := c.ForwardedHeader; h != "" && h != HeaderXForwardedFor && h != HeaderForwarded {
		return fmt.Errorf("gateway.Config: ForwardedHeader is %q: want %s or %s", h, HeaderXForwardedFor, HeaderForwarded)
	}
	for _, name := range c.Hosts {
		if err := headers.CheckHost(name); err != nil {
			return fmt.Errorf("gateway.Config: Hosts: %w", err)
		}
	}
	return nil
}

// limits returns the limits on streams.
func (c Config) limits() limits.Limits {
	return limits.Limits{Total: c.MaxSubscribers, PerClient: c.MaxSubscribersPerClient, PerWatch: c.MaxSubscribersPerWatch}
}

// checkOrigins refuses values that are not an origin as a browser sends it, and also
// "*" and "null": answers to them would be open to everyone.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		if !headers.IsOrigin(o) {
			return fmt.Errorf("gateway.Config: AllowedOrigins: %q: want scheme://host or scheme://host:port, with http or https, as a browser sends it", o)
		}
	}
	return nil
}

func checkHeaders(names []string) error {
	for _, name := range names {
		if !headers.IsPageHeader(name) {
			return fmt.Errorf("gateway.Config: AllowedHeaders: %q: want %s", name, headers.WantPageHeader)
		}
	}
	return nil
}

// withDefaults returns c with every zero value replaced by its default.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Version = cmp.Or(c.Version, "dev")
	c.Commit = cmp.Or(c.Commit, "unknown")
	c.Instance = cmp.Or(c.Instance, strings.ToLower(rand.Text()[:12]))
	c.StreamSettings, c.HTTPSettings = c.StreamSettings.withDefaults(), c.HTTPSettings.withDefaults()
	return c
}

func (s StreamSettings) withDefaults() StreamSettings {
	s.Heartbeat = cmp.Or(s.Heartbeat, 15*time.Second)
	s.WriteTimeout = cmp.Or(s.WriteTimeout, 10*time.Second)
	s.MinRate = cmp.Or(s.MinRate, 4<<10)
	s.Retry = cmp.Or(s.Retry, 1500*time.Millisecond)
	s.MaxAge = cmp.Or(s.MaxAge, 30*time.Minute)
	s.PrimeWait = cmp.Or(s.PrimeWait, DefaultPrimeWait)
	s.AheadWait = cmp.Or(s.AheadWait, log.DefaultAheadWait)
	s.StaleAllowed = cmp.Or(s.StaleAllowed, 5*time.Minute)
	s.DrainDelay = cmp.Or(s.DrainDelay, 2*time.Second)
	s.Drain = cmp.Or(s.Drain, 10*time.Second)
	s.SnapshotBudget = cmp.Or(s.SnapshotBudget, 64<<20)
	s.Pump = cmp.Or(s.Pump, PumpShards)
	s.Compression = cmp.Or(s.Compression, CompressionZstd)
	s.Digest = cmp.Or(s.Digest, DigestOn)
	s.CompressionCache = cmp.Or(s.CompressionCache, 32<<20)
	return s
}

func (s HTTPSettings) withDefaults() HTTPSettings {
	s.ForwardedHeader = cmp.Or(s.ForwardedHeader, HeaderXForwardedFor)
	s.MaxHandshakes = cmp.Or(s.MaxHandshakes, 1024)
	s.MaxHandshakesPerClient = cmp.Or(s.MaxHandshakesPerClient, 256)
	s.BodyBudget = cmp.Or(s.BodyBudget, 64<<20)
	s.AnswerBudget = cmp.Or(s.AnswerBudget, 64<<20)
	return s
}
