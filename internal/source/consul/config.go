package consul

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

const (
	// DefaultProbe detects within ten seconds that a server has stopped answering.
	DefaultProbe = 5 * time.Second
	// MinProbe keeps probes well below the rate limit of a Consul server.
	MinProbe = time.Second
	// DefaultRelist is how long a narrowed policy may go unnoticed.
	DefaultRelist = time.Minute
	// MinRelist limits the cost: a list costs the server and the network as much
	// as a snapshot.
	MinRelist = time.Second
	// DefaultMaxMessageBytes holds a list of half a million small resources:
	// Consul has no paging, a list is one message.
	DefaultMaxMessageBytes = 256 << 20
)

// Wildcard stands for every partition, or every namespace.
const Wildcard = "*"

// Config specifies which resources of which Consul are followed, and how. The fields with a key are
// those of a source of type "consul" in a configuration file.
type Config struct {
	// HTTPAddress is that of the HTTP port of a Consul server or agent, for instance
	// "127.0.0.1:8500". All collections but resource need it.
	HTTPAddress string `yaml:"http_address,is=consul http address"`
	// Address of a Consul server's or agent's gRPC port in gRPC's notation, for
	// instance "127.0.0.1:8502" or "dns:///consul.internal:8503". The collection resource
	// needs it.
	Address string `yaml:"address,is=consul address"`
	// Resources are those that are followed.
	Resources `yaml:"-"`
	// Prefix narrows the collection kv to keys that begin with it. It is not a part of the keys
	// that are served.
	Prefix string `yaml:"-"`
	// Values is what values of the collection kv are taken for.
	Values stream.Values `yaml:"-"`

	// TLS secures the connection; with certificates in it, mutually. nil: plaintext.
	TLS *tls.Config `yaml:"tls"`
	// TokenFile names a file with the ACL token. It is read again for each call,
	// so that the token may be replaced at any time. Empty: no token.
	TokenFile string `yaml:"token_file,is=file of a secret"`
	// ProbeInterval is the time between two small requests, each of which a server
	// must answer within that same time. 0: DefaultProbe; at least MinProbe.
	ProbeInterval time.Duration `yaml:"probe_interval,min=1s"`
	// ListInterval is the approximate time between two complete lists beside the
	// watch, and the longest wait of a blocking query. 0: DefaultRelist; at least MinRelist.
	ListInterval time.Duration `yaml:"list_interval,min=1s"`
	// Consistency is that of blocking queries: ConsistencyStale, ConsistencyConsistent, or
	// empty: Consul's default.
	Consistency string `yaml:"consistency,is=consul consistency"`
	// MaxMessageBytes is the size of the largest list accepted. 0:
	// DefaultMaxMessageBytes.
	MaxMessageBytes int `yaml:"max_message_bytes,bytes" why:"which is the most that gRPC takes"`

	// network, if set, makes the connections: tests have one in memory.
	network func(ctx context.Context, address string) (net.Conn, error)
}

// The values of Config.Consistency.
const (
	// ConsistencyStale lets any server answer.
	ConsistencyStale = "stale"
	// ConsistencyConsistent has the leader make sure each time that it still is the leader.
	ConsistencyConsistent = "consistent"
)

// Consistencies are the values of Config.Consistency that have a name.
var Consistencies = []string{ConsistencyConsistent, ConsistencyStale}

// Resources narrow a collection of Consul. The fields are keys of a watch of a source of type "consul".
type Resources struct {
	// Collection is one of Collections. Empty: Resource.
	Collection string `yaml:"collection,is=consul collection"`
	// Entries has the values of the collection kv be whole entries: the value with the flags, the
	// session and the lock index.
	Entries bool `yaml:"entries"`
	// Service narrows the collection health to one service. Empty: all of them.
	Service string `yaml:"service,is=consul service"`
	// Datacenter is that of the collection. Empty: that of the server. Not of Resource.
	Datacenter string `yaml:"datacenter,is=consul datacenter"`
	// FilterExpression narrows the collection, in Consul's language. Empty: all of it.
	FilterExpression string `yaml:"filter_expression,is=expression"`
	// Type of the resources, for instance "demo.v2.Artist".
	Type string `yaml:"resource_type,is=consul type"`
	// Tenancy is where they are.
	Tenancy `yaml:"tenancy"`
	// NamePrefix narrows the collection to names that begin with it.
	NamePrefix string `yaml:"name_prefix,is=consul prefix"`
}

// Tenancy narrows resources to a partition and a namespace; Wildcard: all there are. Empty: Consul's
// default, which is also right for types that have none.
type Tenancy struct {
	Partition string `yaml:"partition,is=consul tenancy"`
	Namespace string `yaml:"namespace,is=consul tenancy"`
}

// WantAddress describes what ValidAddress accepts, for a user who wrote
// something else.
const WantAddress = `host:port, such as "127.0.0.1:8502" or "dns:///consul:8503", the gRPC port of a Consul server or agent`

// ValidAddress reports whether a server can be at an address.
func ValidAddress(address string) bool { return adapter.ValidAddress(address) }

// WantHTTPAddress describes what an HTTPAddress must be.
const WantHTTPAddress = `host:port, such as "127.0.0.1:8500", the HTTP port of a Consul server or agent; with tls, its HTTPS port`

// ValidHTTPAddress reports whether the HTTP port of a server can be at an address.
func ValidHTTPAddress(address string) bool { return adapter.ValidHostPort(address) }

// WantService describes what ValidService accepts.
const WantService = "the name of a service, such as web"

// ValidService reports whether a service can have a name.
func ValidService(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f })
}

// WantDatacenter describes what ValidDatacenter accepts.
const WantDatacenter = "the name of a datacenter: letters in lower case, digits, '-' and '_'"

// ValidDatacenter reports whether a datacenter can have a name.
func ValidDatacenter(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// Validate reports fields that are missing together.
func (c *Config) Validate(report func(field any, problem string)) {
	if c.Consistency != "" && c.HTTPAddress == "" {
		report(&c.Consistency, "consistency is for collections of the HTTP API; want http_address as well")
	}
	if c.Address == "" && c.HTTPAddress == "" {
		report(c, "want http_address, "+WantHTTPAddress+"; or, for the collection resource, address, "+WantAddress)
	}
}

func (c *Config) check() error {
	if _, problem := c.CheckCollection(); problem != "" {
		return errors.New("consul: " + problem)
	}
	if c.Address != "" && !ValidAddress(c.Address) {
		return invalid("address", c.Address, WantAddress)
	}
	if c.HTTPAddress != "" && !ValidHTTPAddress(c.HTTPAddress) {
		return invalid("http address", c.HTTPAddress, WantHTTPAddress)
	}
	if c.collection() == Resource {
		if _, err := ParseType(c.Type); err != nil {
			return fmt.Errorf("consul: %w", err)
		}
	}
	if c.Service != "" && !ValidService(c.Service) {
		return invalid("service", c.Service, WantService)
	}
	if c.Datacenter != "" && !ValidDatacenter(c.Datacenter) {
		return invalid("datacenter", c.Datacenter, WantDatacenter)
	}
	if c.Consistency != "" && !slices.Contains(Consistencies, c.Consistency) {
		return invalid("consistency", c.Consistency, strings.Join(Consistencies, " or "))
	}
	if !slices.Contains(Collections, c.collection()) {
		return invalid("collection", c.Collection, strings.Join(Collections, ", "))
	}
	if err := c.Values.Check(); err != nil {
		return fmt.Errorf("consul: %w", err)
	}
	for what, name := range map[string]string{"partition": c.Partition, "namespace": c.Namespace} {
		if !ValidTenancy(name) {
			return invalid(what, name, WantTenancy)
		}
	}
	if !ValidNamePrefix(c.NamePrefix) {
		return invalid("name prefix", c.NamePrefix, WantNamePrefix)
	}
	return c.checkTimes()
}

func (c *Config) checkTimes() error {
	for _, d := range []struct {
		what     string
		is, from time.Duration
	}{
		{"probe", c.ProbeInterval, MinProbe},
		{"relist", c.ListInterval, MinRelist},
	} {
		if d.is != 0 && d.is < d.from {
			return invalid(d.what, d.is.String(), d.from.String()+" or more")
		}
	}
	if c.MaxMessageBytes < 0 {
		return errors.New("consul: maximum message size: want 0 or more")
	}
	return nil
}

func invalid(what, got, want string) error {
	return fmt.Errorf("consul: %w", &stream.InvalidError{What: what, Got: got, Want: want})
}

func (c *Config) setDefaults() {
	for d, standard := range map[*time.Duration]time.Duration{
		&c.ProbeInterval: DefaultProbe, &c.ListInterval: DefaultRelist,
	} {
		if *d == 0 {
			*d = standard
		}
	}
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = DefaultMaxMessageBytes
	}
}

// tenancy is built for each call: calls must not share anything.
func (c *Config) tenancy() *pbresource.Tenancy {
	return &pbresource.Tenancy{Partition: c.Partition, Namespace: c.Namespace}
}

// where names the upstream in messages.
func (c *Config) where() string {
	return fmt.Sprintf("consul %s%s, %s", c.Address, adapter.Through(c.options(0).Proxy(c.Address)), c.Type)
}

// WantTenancy describes what ValidTenancy accepts.
const WantTenancy = `a name in lower case such as "default", or "*" for all`

// ValidTenancy reports whether a partition or a namespace can have the name.
func ValidTenancy(name string) bool {
	return name == Wildcard || validName(name) && len(name) < 64
}

// WantNamePrefix describes what ValidNamePrefix accepts.
const WantNamePrefix = "lower-case letters, digits and '-'"

// ValidNamePrefix reports whether names of resources can begin with a prefix.
// Consul takes any text without upper-case letters, but names contain nothing else.
func ValidNamePrefix(prefix string) bool { return validName(prefix) && len(prefix) < 64 }

func validName(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
