package gateway_test

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// node is a gateway on a port of its own that can be killed and started again.
// Owned by the goroutine of its test.
type node struct {
	t        *testing.T
	address  string
	registry *watch.Registry
	http     *http.Server
	served   chan error
	gateway  *gateway.Gateway
	digest   gateway.Digest

	sent atomic.Int64 // bytes

	mu      sync.Mutex // guards the following fields
	streams []*http.Request
	others  []*http.Request
}

// newNode returns a gateway that does not run yet.
func newNode(t *testing.T) *node {
	t.Helper()
	port := realserver.FreePort(t)
	n := &node{t: t, address: realserver.Address(port)}
	t.Cleanup(n.kill)
	return n
}

func (n *node) url() string { return "http://" + n.address }

// start serves a registry, which belongs to the node from now on.
func (n *node) start(r *watch.Registry) {
	n.t.Helper()
	n.registry = r
	n.serve()
}

// serve starts to serve, on the same port as before.
func (n *node) serve() {
	n.t.Helper()
	g, err := gateway.New(n.config())
	if err != nil {
		n.t.Fatal(err)
	}
	l, err := net.Listen("tcp", n.address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.gateway = g
	n.http, n.served = &http.Server{Handler: n.noting(g.Handler())}, make(chan error, 1)
	go func(s *http.Server, served chan error) { served <- s.Serve(countingListener{l, &n.sent}) }(n.http, n.served)
}

func (n *node) config() gateway.Config {
	return gateway.Config{
		Registry: n.registry, Logger: slog.New(slog.DiscardHandler),
		StreamSettings: gateway.StreamSettings{
			Heartbeat: 200 * time.Millisecond, Retry: 40 * time.Millisecond, AheadWait: 50 * time.Millisecond, Digest: n.digest,
		},
	}
}

// turnDigests turns digests on or off, with a reload.
func (n *node) turnDigests(to gateway.Digest) {
	n.t.Helper()
	n.digest = to
	if err := n.gateway.Reload(n.config()); err != nil {
		n.t.Fatal(err)
	}
}

// noting records the requests.
func (n *node) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		if strings.HasSuffix(r.URL.Path, "/events") {
			n.streams = append(n.streams, r)
		} else {
			n.others = append(n.others, r)
		}
		n.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// countingListener counts the bytes that are sent.
type countingListener struct {
	net.Listener
	sent *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.sent}, err
}

type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return c.Conn.Write(p)
}

// requests returns those for streams so far.
func (n *node) requests() []*http.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.streams)
}

// asked returns the paths of all other requests so far.
func (n *node) asked() (paths []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.others {
		paths = append(paths, r.URL.Path)
	}
	return paths
}

// cut breaks every connection and refuses new ones, as if the process were gone.
func (n *node) cut() {
	if n.http == nil {
		return
	}
	_ = n.http.Close()
	if err := <-n.served; !errors.Is(err, http.ErrServerClosed) {
		n.t.Error(err)
	}
	n.http = nil
}

// kill ends everything: the gateway loses all its state.
func (n *node) kill() {
	n.cut()
	if n.registry != nil {
		n.registry.Close()
		n.registry = nil
	}
}

// upstream is the node as the upstream of another.
func (n *node) upstream() *gatewaysource.Upstream {
	n.t.Helper()
	u, err := gatewaysource.New(gatewaysource.Config{URL: n.url()})
	if err != nil {
		n.t.Fatal(err)
	}
	return u
}

func source(t *testing.T, u *gatewaysource.Upstream, watch, prefix string) *gatewaysource.Source {
	t.Helper()
	d, err := view.Parse(view.Params{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	s, err := u.Source(watch, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// add declares a watch with short waits.
func add(t *testing.T, r *watch.Registry, name string, s stream.Source) *watch.Watch {
	t.Helper()
	w, err := r.Add(watch.Config{
		Name: name, SourceName: "upstream", Source: s,
		Backoff: watch.Backoff{Min: 2 * time.Millisecond, Max: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
