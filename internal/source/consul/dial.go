package consul

import (
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"google.golang.org/grpc"
)

const (
	// pingAfter is the silence after which the connection is pinged, where probes
	// are further apart. Consul ends connections that ping more often than every
	// 15 seconds.
	pingAfter = 20 * time.Second
	// pingTimeout is how long a ping may go without an answer.
	pingTimeout = 10 * time.Second
)

// dial prepares a connection for messages up to a size. Each snapshot has its own.
func (c *Config) dial(largest int) (*grpc.ClientConn, error) {
	return c.options(largest).Client(c.Address)
}

func (c *Config) options(largest int) adapter.DialOptions {
	return adapter.DialOptions{
		TLS: c.TLS, MaxMessageBytes: largest,
		PingAfter: pingAfter, PingTimeout: pingTimeout, Network: c.network,
	}
}
