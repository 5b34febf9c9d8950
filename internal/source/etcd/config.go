package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

const (
	// DefaultConnectTimeout leaves time for the other endpoints.
	DefaultConnectTimeout = 3 * time.Second
	// DefaultRequestTimeout is longer than an election takes.
	DefaultRequestTimeout = 10 * time.Second
	// DefaultStallAfter is shorter than the heartbeat of a subscriber, so that
	// it is informed within one.
	DefaultStallAfter = 8 * time.Second
	// MinStallAfter leaves the member time to answer.
	MinStallAfter = 500 * time.Millisecond
)

// Config specifies which keys of which cluster are followed, and how.
type Config struct {
	// Endpoints are members of one cluster, each host:port, alone or after http://
	// or https://. One is used at a time; the first is chosen at random. Required.
	Endpoints []string `yaml:"endpoints,required,is=etcd endpoint"`
	// Prefix narrows the watch to keys that begin with it. It is not part of the
	// resource's key.
	Prefix string `yaml:"-"`
	// Values is what values are taken for.
	Values stream.Values `yaml:"-"`
	// NoHistory means that the cluster is not asked what was deleted before the first state.
	NoHistory bool `yaml:"history,not"`

	// TLS secures the connection; with certificates in it, mutually. nil:
	// plaintext, and for endpoints with https:// the system's authorities.
	TLS *tls.Config `yaml:"tls"`
	// Username logs in with the password that PasswordFile holds, which is read for each
	// connection. Both empty: no login.
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"password_file,is=file of a secret"`

	// ConnectTimeout is how long one endpoint may take to connect, to log in and
	// to answer the first read. 0: DefaultConnectTimeout.
	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	// RequestTimeout is how long a page of the list may take. 0: DefaultRequestTimeout.
	RequestTimeout time.Duration `yaml:"request_timeout"`
	// StallAfter is how long a connected member may be silent, although it gets
	// several requests in that time. 0: DefaultStallAfter; at least MinStallAfter.
	StallAfter time.Duration `yaml:"stall_after,min=500ms"`

	// network, if set, makes the connections: tests have one in memory.
	network func(ctx context.Context, address string) (net.Conn, error)
}

func (c *Config) check() error {
	switch {
	case len(c.Endpoints) == 0:
		return errors.New("etcd: no endpoint: want one like https://etcd-1:2379")
	case c.ConnectTimeout < 0 || c.RequestTimeout < 0:
		return errors.New("etcd: connect timeout and request timeout: want 0 or more")
	case c.StallAfter != 0 && c.StallAfter < MinStallAfter:
		return fmt.Errorf("etcd: %w", &stream.InvalidError{
			What: "stall after", Got: c.StallAfter.String(), Want: MinStallAfter.String() + " or more"})
	}
	err := c.Values.Check()
	c.Validate(func(_ any, problem string) { err = errors.New(problem) })
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// Validate reports fields that cannot be together.
func (c *Config) Validate(report func(field any, problem string)) {
	if (c.Username == "") != (c.PasswordFile == "") {
		report(c, adapter.WantBoth)
	}
}

// endpoints parses the endpoints.
func (c *Config) endpoints() (all []endpoint, err error) {
	for _, text := range c.Endpoints {
		e, ok := parseEndpoint(text)
		if !ok {
			return nil, fmt.Errorf("etcd: %w", &stream.InvalidError{What: "endpoint", Got: text, Want: WantEndpoint})
		}
		if c.TLS != nil && e.scheme == "http" {
			return nil, fmt.Errorf("etcd: %w", &stream.InvalidError{What: "endpoint", Got: text, Want: "https://, since TLS is configured"})
		}
		all = append(all, e)
	}
	return all, nil
}

func (c *Config) setDefaults() {
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, DefaultConnectTimeout)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, DefaultRequestTimeout)
	c.StallAfter = cmp.Or(c.StallAfter, DefaultStallAfter)
}

// pulse is how often a member is asked for a sign of life.
func (c *Config) pulse() time.Duration { return c.StallAfter / 4 }
