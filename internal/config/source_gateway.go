package config

import (
	"crypto/tls"
	"time"
)

// GatewaySource is a source of type "gateway": another gateway, over HTTP.
type GatewaySource struct {
	// URL of the gateway ("url"; required), with a path if it is served below one.
	URL string
	// TLS is made of "tls", as for a source of type grpc; only for https. nil:
	// the system's authorities are trusted.
	TLS *tls.Config
	// TokenFile is the name of a file that holds a token ("token_file"). It is
	// read for each connection, so that the token may rotate.
	TokenFile string
	// Headers are sent with each request ("headers", and "header_files", whose
	// values are names of files that hold the value, read once at start).
	Headers Metadata
	// StallAfter is the silence after which the upstream counts as stalled
	// ("stall_after").
	StallAfter time.Duration
	// MaxEventBytes is the most bytes of one event ("max_event_bytes").
	MaxEventBytes int
}
