//go:build servers

package deploy_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/streamtest/loopback"
	"github.com/watchtide/watchtide/stream/watch"
)

// patience is how long a test waits for what must happen. Only failing tests wait
// that long.
const patience = time.Minute

// backend is an upstream that all replicas of a gateway follow, and that changes all
// the time.
type backend struct {
	*streamtest.Upstream

	mu        sync.Mutex
	endpoints map[*streamtest.Replica]bool
}

func newBackend() *backend {
	return &backend{Upstream: streamtest.NewUpstream("e", streamtest.OwnRevision), endpoints: map[*streamtest.Replica]bool{}}
}

// endpoint returns a source that shows everything, until it is closed.
func (b *backend) endpoint() (r *streamtest.Replica, closeIt func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r = b.Replica()
	b.endpoints[r] = true
	return r, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.endpoints, r)
	}
}

// commit makes a transaction that all replicas see.
func (b *backend) commit(writes ...streamtest.Write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Commit(1, writes...)
	for r := range b.endpoints {
		r.Catch(-1)
	}
}

// replica is a gateway whose address stays its own while it is restarted.
type replica struct {
	t       *testing.T
	backend *backend
	address string
	stop    func() // drains the gateway, and waits for its end
}

func newReplica(t *testing.T, b *backend) *replica {
	t.Helper()
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{t: t, backend: b, address: l.Addr().String()}
	r.serve(l)
	t.Cleanup(func() { r.stop() })
	return r
}

// restart does what a rolling restart does to one replica: it drains the gateway,
// starts another one, and waits until that is ready.
func (r *replica) restart() {
	r.t.Helper()
	r.stop()
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.serve(l)
	for !r.ready() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-r.t.Context().Done():
			return
		}
	}
}

func (r *replica) serve(l net.Listener) {
	r.t.Helper()
	registry := watch.NewRegistry()
	endpoint, closeEndpoint := r.backend.endpoint()
	quiet := slog.New(slog.DiscardHandler)
	if _, err := registry.Add(watch.Config{Name: "services", SourceName: "backend", Source: endpoint, Logger: quiet}); err != nil {
		r.t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Registry: registry, Logger: quiet,
		Retry: 500 * time.Millisecond, DrainDelay: 200 * time.Millisecond, Drain: 3 * time.Second,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, gateway.Listeners{HTTP: l}) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Errorf("replica at %s: %v", r.address, err)
		}
		registry.Close()
		closeEndpoint()
	})
}

func (r *replica) ready() bool {
	request, err := http.NewRequest(http.MethodGet, "http://"+r.address+"/readyz", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
