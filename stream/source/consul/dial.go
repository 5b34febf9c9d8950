package consul

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	// pingAfter is the silence after which the connection is pinged, where probes
	// are further apart. Consul ends connections that ping more often than every
	// 15 seconds.
	pingAfter = 20 * time.Second
	// pingTimeout is how long a ping may go without an answer.
	pingTimeout = 10 * time.Second
)

// dial prepares a connection; the first call makes it. Each snapshot has its own:
// a long-lived connection backs off on its own schedule, and would still fail
// calls when the server is back already. The back-off is left to ingest.
func (c *Config) dial() (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if c.TLS != nil {
		creds = credentials.NewTLS(c.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.MaxMessageBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
	}
	if c.network != nil {
		options = append(options, grpc.WithContextDialer(c.network))
	}
	return grpc.NewClient(c.Address, options...)
}
