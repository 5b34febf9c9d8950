package consulsource

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// pingTimeout is how long a keepalive ping may go without an answer.
const pingTimeout = 10 * time.Second

// dial prepares a connection; the first call makes it. Each snapshot has its own:
// a connection that lives on backs off by its own clock, and would answer from
// that while the server is back already. The back-off is ingest's.
func (c *Config) dial() (*grpc.ClientConn, error) {
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
	return grpc.NewClient(c.Address, options...)
}
