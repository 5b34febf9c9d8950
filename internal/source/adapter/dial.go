package adapter

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// DialOptions specifies a connection.
type DialOptions struct {
	// TLS secures the connection; with certificates in it, mutually. nil: plaintext.
	TLS *tls.Config
	// MaxMessageBytes is the size of the largest message accepted.
	MaxMessageBytes int
	// PingAfter is the silence after which the connection is pinged; 0 or less: never.
	PingAfter time.Duration
	// PingTimeout is how long a ping may go without an answer.
	PingTimeout time.Duration
	// Network, if set, makes the connection: tests have one in memory.
	Network func(ctx context.Context, address string) (net.Conn, error)
}

// Client prepares a connection; the first call makes it. Each Watch call should have
// its own: a long-lived ClientConn backs off on its own schedule, for up to two
// minutes, and would still fail calls after the upstream has recovered. The back-off
// is left to ingest.
func (o DialOptions) Client(address string) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxMessageBytes)),
	}
	if o.PingAfter > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: o.PingAfter, Timeout: o.PingTimeout,
		}))
	}
	if o.Network != nil {
		options = append(options, grpc.WithContextDialer(o.Network))
	}
	return grpc.NewClient(address, options...)
}
