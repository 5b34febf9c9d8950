package grpc

import (
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"google.golang.org/grpc"
)

// pingTimeout is how long a keepalive ping may go without an answer.
const pingTimeout = 20 * time.Second

// connect returns the connection for the calls of one Watch, and a function that
// ends it.
func (c *Config) connect() (grpc.ClientConnInterface, func(), error) {
	if c.Conn != nil {
		return c.Conn, func() {}, nil
	}
	conn, err := c.options().Client(c.Address)
	if err != nil {
		return nil, nil, err
	}
	return conn, func() { _ = conn.Close() }, nil
}

func (c *Config) options() adapter.DialOptions {
	return adapter.DialOptions{
		TLS: c.TLS, MaxMessageBytes: c.MaxMessageBytes,
		PingAfter: c.Keepalive, PingTimeout: pingTimeout, Network: c.network,
	}
}
