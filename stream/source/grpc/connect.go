package grpc

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// pingTimeout is how long a keepalive ping may go without an answer.
const pingTimeout = 20 * time.Second

// dial prepares a connection; the first call makes it. Each Watch call has its
// own: a long-lived ClientConn backs off on its own schedule, for up to two
// minutes, and would still fail calls when the upstream is back already. The
// back-off is left to ingest.
func (c *Config) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(c.Address, c.dialOptions()...)
}

func (c *Config) dialOptions() []grpc.DialOption {
	creds := insecure.NewCredentials()
	if c.TLS != nil {
		creds = credentials.NewTLS(c.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxMessageBytes)),
	}
	if c.Keepalive > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: c.Keepalive, Timeout: pingTimeout,
		}))
	}
	if c.network != nil {
		options = append(options, grpc.WithContextDialer(c.network))
	}
	return options
}

// connect returns the connection for calls, and a function that ends it.
func (c *Config) connect() (grpc.ClientConnInterface, func(), error) {
	if c.Conn != nil {
		return c.Conn, func() {}, nil
	}
	conn, err := c.dial()
	if err != nil {
		return nil, nil, err
	}
	return conn, func() { _ = conn.Close() }, nil
}
