package config

import (
	"crypto/tls"
	"time"
)

// NATSSource is a source of type "nats": the key-value buckets of NATS JetStream.
type NATSSource struct {
	// URL is one server or several of one cluster ("url"; required), each
	// nats://host:port or tls://host:port, separated by commas.
	URL string
	// TLS is made of "tls", as for a source of type grpc; nil: as the server
	// requires, with the system's authorities.
	TLS *tls.Config
	// At most one way to log in. The files are read at start, as a check, and
	// for each connection, so that they may change: CredentialsFile holds a JWT
	// and its seed ("credentials_file"), NKeyFile a seed ("nkey_file"),
	// TokenFile a token ("token_file"), and PasswordFile the password of
	// Username ("password_file", "username").
	CredentialsFile, NKeyFile, TokenFile string
	Username, PasswordFile               string
	// Domain is the JetStream domain ("domain").
	Domain string
	// InboxPrefix is what the subjects begin with on which the server answers
	// ("inbox_prefix"; _INBOX).
	InboxPrefix string
	// StallAfter is the silence after which the server counts as stalled
	// ("stall_after"; at least 500ms).
	StallAfter time.Duration
	// PollInterval is the time between two checks for keys that vanished
	// ("poll_interval"; at least 100ms).
	PollInterval time.Duration
}
