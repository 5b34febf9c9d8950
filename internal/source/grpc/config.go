package grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
)

const (
	// DefaultMaxMessageBytes leaves room for values well above those that the
	// embedded store accepts.
	DefaultMaxMessageBytes = 16 << 20
	// DefaultKeepalive is longer than the five minutes that gRPC servers
	// require between pings by default.
	DefaultKeepalive = 6 * time.Minute
	// MinKeepalive is the shortest interval that gRPC clients may use (gRFC A8).
	MinKeepalive = 10 * time.Second
)

// Config specifies which watch of which server is followed, and how.
type Config struct {
	// Address of the server in gRPC's notation, for instance
	// "dns:///backend:9000" or "127.0.0.1:9000". Not needed with Conn.
	Address string `yaml:"address,required,is=grpc address"`
	// Watch is the upstream's name of the watch.
	Watch string `yaml:"-"`
	// Prefix narrows the watch to keys that begin with it. An upstream that
	// does not narrow is narrowed here.
	Prefix string `yaml:"-"`

	// TLS secures the connection; with certificates in it, mutually. nil: plaintext.
	TLS *tls.Config `yaml:"tls"`
	// Metadata is sent with each call, for instance authorization. It is
	// never logged.
	Metadata adapter.Metadata `yaml:"metadata,files=metadata_files,names=metadata"`
	// TokenFile holds a token that is sent as authorization: Bearer. It is read for
	// each call, so that the token may rotate. "": none.
	TokenFile string `yaml:"token_file,is=file of a secret"`
	// Keepalive is how long the connection may be silent before an HTTP/2 ping
	// checks the server. The answer must come within 20 seconds. 0:
	// DefaultKeepalive; at least MinKeepalive; negative: no pings. Servers end
	// connections that ping more often than they allow.
	Keepalive time.Duration `yaml:"keepalive,min=10s,off"`
	// StallAfter is how long a connected upstream may send nothing. It needs an
	// upstream that sends bookmarks at shorter intervals. 0: forever.
	StallAfter time.Duration `yaml:"stall_after"`
	// MaxMessageBytes is the size of the largest event accepted. 0: DefaultMaxMessageBytes.
	MaxMessageBytes int `yaml:"max_message_bytes,bytes" why:"which is the most that gRPC takes"`

	// Conn is used instead of a connection to Address, for servers in the same
	// process. It stays open when the Source is closed. TLS, Keepalive and
	// MaxMessageBytes belong to the connection and are not used with it.
	Conn grpc.ClientConnInterface `yaml:"-"`

	// network, if set, makes the connections: tests have one in memory.
	network func(ctx context.Context, address string) (net.Conn, error)
}

// WantAddress describes what ValidAddress accepts, for a user who wrote something
// else.
const WantAddress = `host:port, such as "backend:9000" or "dns:///backend:9000", with a port from 1 to 65535`

// ValidAddress reports whether a server can be at an address.
func ValidAddress(address string) bool { return adapter.ValidAddress(address) }

func (c *Config) check() error {
	if c.Address == "" && c.Conn == nil {
		return errors.New("grpc: no address: want one like dns:///backend:9000")
	}
	if c.Conn == nil && !ValidAddress(c.Address) {
		return fmt.Errorf("grpc: %w", &stream.InvalidError{What: "address", Got: c.Address, Want: WantAddress})
	}
	if err := stream.CheckWatchName(c.Watch); err != nil {
		return fmt.Errorf("grpc: %w", err)
	}
	if !utf8.ValidString(c.Prefix) {
		return fmt.Errorf("grpc: %w", &stream.InvalidError{What: "prefix", Got: c.Prefix, Want: "UTF-8"})
	}
	if 0 < c.Keepalive && c.Keepalive < MinKeepalive {
		return fmt.Errorf("grpc: %w", &stream.InvalidError{
			What: "keepalive", Got: c.Keepalive.String(), Want: MinKeepalive.String() + " or more"})
	}
	if c.StallAfter < 0 || c.MaxMessageBytes < 0 {
		return errors.New("grpc: stall after and maximum message size: want 0 or more")
	}
	return c.checkMetadata()
}

// checkMetadata names a key, never a value: values are secrets.
func (c *Config) checkMetadata() error {
	for key := range c.Metadata {
		lower := strings.ToLower(key)
		if key == "" || strings.HasPrefix(lower, "grpc-") || strings.HasPrefix(lower, ":") {
			return fmt.Errorf("grpc: %w", &stream.InvalidError{
				What: "metadata key", Got: key, Want: "a name that gRPC does not reserve"})
		}
		if c.TokenFile != "" && lower == "authorization" {
			return errors.New("grpc: both a token file and metadata authorization are given: want one of them")
		}
	}
	return nil
}

// outgoing returns the metadata of a call. The token and files are read again each time: they
// may rotate.
func (c *Config) outgoing() (map[string]string, error) {
	const line = "one line of printable ASCII"
	all, err := c.Metadata.Read(validValue, line)
	if err != nil || c.TokenFile == "" {
		return all, err
	}
	token, err := adapter.ReadSecret(c.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	if !validValue(token) {
		return nil, fmt.Errorf("token file %s: want %s", c.TokenFile, line)
	}
	all["authorization"] = "Bearer " + token
	return all, nil
}

// validValue reports whether gRPC sends a text as it is (printable ASCII).
func validValue(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != ""
}

func (c *Config) setDefaults() {
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if c.Keepalive == 0 {
		c.Keepalive = DefaultKeepalive
	}
}

// target names the upstream in messages.
func (c *Config) target() string {
	if c.Conn != nil {
		return "in process"
	}
	return c.Address + adapter.Through(c.options().Proxy(c.Address))
}
