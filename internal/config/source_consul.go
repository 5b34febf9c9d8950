package config

import (
	"crypto/tls"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// ConsulSource is a source of type "consul": the resources of Consul's resource
// service.
type ConsulSource struct {
	// Address is a gRPC target: the gRPC port of a server or an agent.
	Address string `yaml:"address,required,is=consul address"`
	// TLS is made of "tls", as for a source of type grpc; nil: plain text.
	TLS *tls.Config `yaml:"tls"`
	// TokenFile is the name of a file with the ACL token. It is read at start, as a
	// check, and again for each call, so that the token may change.
	TokenFile string `yaml:"token_file,is=file of a secret"`
	// ProbeInterval is the time between two small reads that show whether the server
	// is alive.
	ProbeInterval time.Duration `yaml:"probe_interval,min=1s"`
	// ListInterval is the approximate time between two lists beside the watch.
	ListInterval time.Duration `yaml:"list_interval,min=1s"`
	// MaxMessageBytes is the most bytes of one list.
	MaxMessageBytes int `yaml:"max_message_bytes,bytes" why:"which is the most that gRPC takes"`
}

// ConsulWatch is how a watch of a source of type "consul" is narrowed.
type ConsulWatch struct {
	// ResourceType is group.storage.Kind.
	ResourceType  string `yaml:"resource_type,required,is=consul type"`
	ConsulTenancy `yaml:"tenancy"`
	// NamePrefix is the prefix of names.
	NamePrefix string `yaml:"name_prefix,is=consul prefix"`
}

// ConsulTenancy is the section "tenancy" of a watch of resources; "*": all.
type ConsulTenancy struct {
	Partition string `yaml:"partition,is=consul tenancy"`
	Namespace string `yaml:"namespace,is=consul tenancy"`
}

// The names of Consul have no escapes, and "*" means all of them.
var (
	consulName     = decode.OnlyOf(decode.LowerCase + decode.Digits + "-")
	consulTypePart = decode.OnlyOf(decode.LowerCase + decode.UpperCase + decode.Digits + "_")
)
