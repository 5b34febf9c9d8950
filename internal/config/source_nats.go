package config

import (
	"crypto/tls"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// NATSSource is a source of type "nats": the key-value buckets of NATS JetStream.
type NATSSource struct {
	// URL is one server or several of one cluster, each nats://host:port or
	// tls://host:port, separated by commas.
	URL string `yaml:"url,required,is=nats url"`
	// TLS is made of "tls", as for a source of type grpc; nil: as the server
	// requires, with the system's authorities.
	TLS *tls.Config `yaml:"tls"`
	// At most one way to log in. The files are read at start, as a check, and for
	// each connection, so that they may change: CredentialsFile holds a JWT and its
	// seed, NKeyFile a seed, TokenFile a token, and PasswordFile the password of
	// Username.
	CredentialsFile string `yaml:"credentials_file,is=file"`
	NKeyFile        string `yaml:"nkey_file,is=file"`
	TokenFile       string `yaml:"token_file,is=file of a secret"`
	Username        string `yaml:"username"`
	PasswordFile    string `yaml:"password_file,is=file of a secret"`
	// Domain is the JetStream domain.
	Domain string `yaml:"domain,is=nats bucket"`
	// InboxPrefix is the prefix of the subjects on which the server answers
	// (_INBOX).
	InboxPrefix string `yaml:"inbox_prefix,is=nats prefix"`
	// StallAfter is the silence after which the server counts as stalled.
	StallAfter time.Duration `yaml:"stall_after,min=500ms"`
	// PollInterval is the time between two checks for keys that vanished.
	PollInterval time.Duration `yaml:"poll_interval,min=100ms"`
}

func (n *NATSSource) check(d *decoder, at decode.Value) {
	username, password := d.IsGiven(&n.Username), d.IsGiven(&n.PasswordFile)
	ways := 0
	for _, given := range []bool{d.IsGiven(&n.CredentialsFile), d.IsGiven(&n.NKeyFile), d.IsGiven(&n.TokenFile), username || password} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		d.Errorf(at, "want one of credentials_file, nkey_file, token_file, and username with password_file")
	case username != password:
		d.Errorf(at, wantBoth)
	}
}

// In the name of a bucket, and in a pattern of keys, a parameter is a part of one token:
// '.', '*' and '>' cannot be escaped there.
var (
	natsName  = decode.OnlyOf(decode.LowerCase + decode.UpperCase + decode.Digits + "-_")
	natsToken = decode.OnlyOf(decode.LowerCase + decode.UpperCase + decode.Digits + "-_/=")
)
