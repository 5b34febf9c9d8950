package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	maxHeader = 256 << 10 // bytes of the header of an answer
	maxUnread = 1 << 20   // bytes of an answer that are received before they are read
	// idleTimeout ends connections of a credential that has been replaced.
	idleTimeout = 90 * time.Second
)

// newTransport returns a transport of our own, with client-go's TLS and
// credentials around it. client-go's own transports are shared in the process,
// and ping after 30 s of silence. sent learns the credentials of each request.
func newTransport(c *rest.Config, open *connections, stallAfter time.Duration, sent *credentials, proxy func(*http.Request) (*url.URL, error)) (http.RoundTripper, *http.Transport, error) {
	tc, err := c.TransportConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("credentials: %w", err)
	}
	tls, err := transport.TLSConfigFor(tc)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS: %w", err)
	}
	t := &http.Transport{
		Proxy: proxy, DialContext: open.connect, TLSClientConfig: tls,
		TLSHandshakeTimeout: stallAfter,
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  tc.DisableCompression,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: stallAfter / 2, PingTimeout: stallAfter / 2, MaxReceiveBufferPerStream: maxUnread,
		},
		MaxResponseHeaderBytes: maxHeader,
	}
	tc.UserAgent = cmp.Or(tc.UserAgent, "watchtide-gateway")
	rt, err := transport.HTTPWrappersForConfig(tc, &noting{t, sent})
	if err != nil {
		return nil, nil, fmt.Errorf("credentials: %w", err)
	}
	return rt, t, nil
}

// connections are those of one client. http.Transport closes idle connections, and
// a connection becomes idle only some time after its last request was abandoned.
type connections struct {
	// Static after construction.
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex // guards what follows
	open map[net.Conn]struct{}
}

func newConnections(c *rest.Config, timeout time.Duration) *connections {
	made := &connections{dial: c.Dial, open: map[net.Conn]struct{}{}}
	if made.dial == nil {
		made.dial = (&net.Dialer{Timeout: timeout}).DialContext
	}
	return made
}

func (c *connections) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	c.open[conn] = struct{}{}
	return &connection{conn, c}, nil
}

// close closes the open connections, and those that are still being made.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Close()
	}
	c.open = nil
}

// connection is one of them.
type connection struct {
	net.Conn
	of *connections
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
