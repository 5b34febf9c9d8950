package config

import (
	"crypto/tls"
	"time"
)

// ConsulSource is a source of type "consul": the resources of Consul's resource
// service.
type ConsulSource struct {
	// Address is a gRPC target ("address"; required): the gRPC port of a server or
	// an agent.
	Address string
	// TLS is made of "tls", as for a source of type grpc; nil: plain text.
	TLS *tls.Config
	// TokenFile is the name of a file with the ACL token ("token_file"). It is read
	// at start, as a check, and again for each call, so that the token may change.
	TokenFile string
	// ProbeInterval is the time between two small reads that show whether the server
	// is alive ("probe_interval"; at least 1s).
	ProbeInterval time.Duration
	// ListInterval is the approximate time between two lists beside the
	// watch ("list_interval"; at least 1s).
	ListInterval time.Duration
	// MaxMessageBytes is the most bytes of one list ("max_message_bytes").
	MaxMessageBytes int
}

// ConsulWatch is how a watch of a source of type "consul" is narrowed.
type ConsulWatch struct {
	// ResourceType is group.version.Kind ("resource_type"; required).
	ResourceType string
	// Partition and Namespace are "tenancy" {"partition", "namespace"}; "*": all.
	Partition, Namespace string
	// NamePrefix is what names begin with ("name_prefix").
	NamePrefix string
}
