package adapter

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
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

// ValidAddress reports whether a server can be at an address: host:port, which gRPC
// resolves by DNS, or one in gRPC's notation with a built-in scheme. A port is
// required, since gRPC's default, 443, is hardly ever meant.
func ValidAddress(address string) bool {
	scheme, rest, found := strings.Cut(address, ":")
	switch {
	case found && scheme == "dns":
		if server, target, ok := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); ok && strings.HasPrefix(rest, "//") {
			return !strings.ContainsAny(server, " ") && ValidHostPort(target)
		}
		return ValidHostPort(rest)
	case found && resolver.Get(scheme) != nil:
		return rest != "" && rest != "//"
	}
	return ValidHostPort(address)
}

// ValidHostPort reports whether a text is host:port, with a port from 1 to 65535.
func ValidHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || strings.ContainsAny(host, " /") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// Proxy returns the proxy through which connections to an address go; nil: there is none. gRPC
// uses the one that the environment names for https, even without TLS.
func (o DialOptions) Proxy(address string) (*url.URL, error) {
	target := strings.TrimPrefix(address[strings.LastIndexByte(address, '/')+1:], "dns:")
	if o.Network != nil || !ValidHostPort(target) { // such as a socket of this machine
		return nil, nil
	}
	return http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: target}})
}

// Through says in a message that requests go through a proxy: " through the proxy HOST"; empty:
// there is none. The arguments are the result of the Proxy of an http.Transport.
func Through(proxy *url.URL, err error) string {
	if err != nil || proxy == nil {
		return ""
	}
	return " through the proxy " + proxy.Host // without credentials
}
