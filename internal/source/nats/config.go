package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

const (
	// DefaultStallAfter is the default of Config.StallAfter.
	DefaultStallAfter = 4 * time.Second
	// MinStallAfter leaves time for the heartbeats, of which the server makes at
	// most ten a second.
	MinStallAfter = 500 * time.Millisecond
	// DefaultPollInterval is the default of Config.PollInterval.
	DefaultPollInterval = 5 * time.Second
	// MinPollInterval is the shortest interval at which a server should be polled.
	MinPollInterval = 100 * time.Millisecond
)

// Config specifies which bucket of which server is followed, and how. The fields with a key are those
// of a source of type "nats" in a configuration file.
type Config struct {
	// URL is one server or several, comma-separated: see ValidURL. Several are
	// of one cluster, and are tried in random order. Required.
	URL string `yaml:"url,required,is=nats url"`
	// Bucket is the name of the bucket. Required.
	Bucket string `yaml:"-"`
	// Keys narrows the watch to keys that match a pattern: tokens between dots,
	// of which "*" is any one and ">" is all that follow. "": all keys.
	Keys string `yaml:"-"`
	// Values is what values are taken for.
	Values stream.Values `yaml:"-"`
	// Domain is the JetStream domain, for a bucket behind a leaf node. "": that
	// of the server.
	Domain string `yaml:"domain,is=nats bucket"`
	// InboxPrefix is the prefix of the subjects on which the server answers.
	// "": "_INBOX".
	InboxPrefix string `yaml:"inbox_prefix,is=nats prefix"`

	// TLS secures the connection; with certificates in it, mutually. nil: as the
	// server requires, with the system's authorities.
	TLS *tls.Config `yaml:"tls"`

	// At most one way to authenticate. The files are read at each
	// connection, so they may change; their content is never logged.

	// CredentialsFile holds a JWT and its seed, as made by nsc.
	CredentialsFile string `yaml:"credentials_file,is=file"`
	// NKeyFile holds the seed of an nkey.
	NKeyFile string `yaml:"nkey_file,is=file"`
	// TokenFile holds a token.
	TokenFile string `yaml:"token_file,is=file of a secret"`
	// Username logs in with the password that PasswordFile holds.
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file,is=file of a secret"`

	// StallAfter is how long the server may be silent. It sends heartbeats four
	// times as often. 0: DefaultStallAfter; at least MinStallAfter.
	StallAfter time.Duration `yaml:"stall_after,min=500ms"`
	// PollInterval is how often the bucket is compared with the known keys,
	// which delays the detection of keys that vanish without a message. 0:
	// DefaultPollInterval; at least MinPollInterval.
	PollInterval time.Duration `yaml:"poll_interval,min=100ms"`

	// network, if set, makes the connections: tests have one in memory.
	network func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c *Config) check() error {
	for _, known := range []struct {
		what, got, want string
		ok              bool
	}{
		{"url", hidden(c.URL), WantURL, ValidURL(c.URL)},
		{"bucket", c.Bucket, WantBucket, ValidBucket(c.Bucket)},
		{"keys", c.Keys, WantKeys, c.Keys == "" || ValidKeys(c.Keys)},
		{"domain", c.Domain, WantBucket, c.Domain == "" || ValidBucket(c.Domain)},
		{"inbox prefix", c.InboxPrefix, WantPrefix, c.InboxPrefix == "" || ValidPrefix(c.InboxPrefix)},
		{"stall after", c.StallAfter.String(), MinStallAfter.String() + " or more", c.StallAfter == 0 || c.StallAfter >= MinStallAfter},
		{"poll interval", c.PollInterval.String(), MinPollInterval.String() + " or more", c.PollInterval == 0 || c.PollInterval >= MinPollInterval},
	} {
		if !known.ok {
			return fmt.Errorf("nats: %w", &stream.InvalidError{What: known.what, Got: known.got, Want: known.want})
		}
	}
	if err := c.Values.Check(); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	var err error
	c.Validate(func(_ any, problem string) { err = errors.New("nats: " + problem) })
	return err
}

// Validate reports fields that cannot be together.
func (c *Config) Validate(report func(field any, problem string)) {
	var ways int
	for _, given := range []string{c.CredentialsFile, c.NKeyFile, c.TokenFile, c.Username + c.PasswordFile} {
		if given != "" {
			ways++
		}
	}
	switch {
	case ways > 1:
		report(c, "want one of credentials_file, nkey_file, token_file, and username with password_file")
	case (c.Username == "") != (c.PasswordFile == ""):
		report(c, adapter.WantBoth)
	}
}

func (c *Config) setDefaults() {
	if c.StallAfter == 0 {
		c.StallAfter = DefaultStallAfter
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.InboxPrefix == "" {
		c.InboxPrefix = "_INBOX"
	}
	if c.network == nil {
		c.network = (&net.Dialer{}).DialContext
	}
}

// heartbeat is how often an idle server sends a heartbeat.
func (c *Config) heartbeat() time.Duration { return c.StallAfter / 4 }

// String names the upstream in messages.
func (c *Config) String() string {
	where := fmt.Sprintf("nats %s, bucket %q", strings.Join(servers(c.URL), ","), c.Bucket)
	if c.Keys != "" {
		where += fmt.Sprintf(", keys %q", c.Keys)
	}
	return where
}
