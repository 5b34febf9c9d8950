package config

import (
	"crypto/tls"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// GatewaySource is a source of type "gateway": another gateway, over HTTP.
type GatewaySource struct {
	// URL of the gateway, with a path if it is served below one.
	URL string `yaml:"url,required,is=gateway url"`
	// TLS is made of "tls", as for a source of type grpc; only for https. nil: the
	// system's authorities are trusted.
	TLS *tls.Config `yaml:"tls"`
	// TokenFile is the name of a file that holds a token. It is read for each
	// connection, so that the token may rotate.
	TokenFile string `yaml:"token_file,is=file of a secret"`
	// Headers are sent with each request. The values of header_files are read from
	// files, once at start.
	Headers Metadata `yaml:"headers,files=header_files,names=header"`
	// StallAfter is the silence after which the upstream counts as stalled.
	StallAfter time.Duration `yaml:"stall_after"`
	// MaxEventBytes is the most bytes of one event.
	MaxEventBytes int `yaml:"max_event_bytes,bytes"`
}

func (g *GatewaySource) check(d *decoder, at decode.Value) {
	if g.TLS != nil && strings.HasPrefix(g.URL, "http:") {
		d.Errorf(at, "tls is given for a url that begins with http: want https, or no tls")
	}
	if _, given := g.Headers["Authorization"]; given && g.TokenFile != "" {
		d.Errorf(at, "want token_file, or a header Authorization, not both")
	}
}
