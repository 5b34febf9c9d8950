//go:build servers

package deploy_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// patience is how long a test waits for what must happen. Only failing tests wait
// that long.
const patience = time.Minute

// backend is the upstream of all replicas, behind a gateway in the process of the test.
type backend struct {
	*streamtest.Upstream
	endpoint *streamtest.Replica
	url      string

	mu sync.Mutex // held during a commit
}

func newBackend(t *testing.T) *backend { return newBackendOf(t, streamtest.OwnRevision) }

func newBackendOf(t *testing.T, deletes streamtest.DeleteRevisions) *backend {
	t.Helper()
	b := &backend{Upstream: streamtest.NewUpstream("e", deletes)}
	b.endpoint = b.Replica()
	b.url = serve(t, b.endpoint)
	b.commit(streamtest.Write{Key: "a/b//c", Value: streamtest.ValueOf(0)})
	return b
}

// serve serves the watch services of a source with a gateway in this process, and returns its address.
func serve(t *testing.T, source stream.Source) (url string) {
	t.Helper()
	registry := watch.NewRegistry()
	quiet := slog.New(slog.DiscardHandler)
	if _, err := registry.Add(watch.Config{Name: "services", SourceName: "backend", Source: source, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Registry: registry, Logger: quiet, StreamSettings: gateway.StreamSettings{Drain: -1}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := realserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, gateway.Listeners{HTTP: l}) }()
	t.Cleanup(func() {
		cancel(gateway.ErrNoDelay)
		if err := <-served; err != nil {
			t.Errorf("the upstream's gateway: %v", err)
		}
		registry.Close()
	})
	return "http://" + l.Addr().String()
}

// commit makes a transaction.
func (b *backend) commit(writes ...streamtest.Write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Commit(1, writes...)
	b.endpoint.Catch(-1)
}

// program returns the path of the built program. It is built once.
var program = sync.OnceValues(func() (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	path = filepath.Join(cache, "watchtide-deploy", "watchtide")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", path, "./cmd/gateway")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return path, nil
})

// replica is the program as a process of its own, with an address that stays its own.
type replica struct {
	*realserver.Server
	t                   *testing.T
	address, operations string
}

// following is the configuration of what follows a gateway.
func following(url string) string {
	return fmt.Sprintf("sources: { core: { type: gateway, url: %q } }\nwatches: { services: { source: core, required: true } }\n", url)
}

// newReplica starts a replica whose section stream is the given one, and its sources and watches, and waits
// until it is ready.
func newReplica(t *testing.T, sources, stream string) *replica {
	t.Helper()
	return newReplicaAs(t, sources, stream, func(path, file string) realserver.Command {
		return realserver.Command{Path: path, Args: []string{"serve", "--config", file}}
	})
}

// newReplicaAs is newReplica for a replica that is started in another way.
func newReplicaAs(t *testing.T, sources, stream string, as func(path, file string) realserver.Command) *replica {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{t: t, address: realserver.FreeAddress(t), operations: realserver.FreeAddress(t)}
	file := write(t, t.TempDir(), "watchtide.yaml", fmt.Sprintf(`
http: { listen: %q, trusted_proxies: [127.0.0.1] }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: %q }
stream: { %s }
%s`, r.address, r.operations, stream, sources))
	command := as(path, file)
	command.Address = r.address
	r.Server = command.Start(t)
	r.awaitReady()
	return r
}

// stop drains the replica, and waits for its end.
func (r *replica) stop() {
	r.t.Helper()
	if err := r.Stop(); err != nil {
		r.t.Error(err)
	}
}

// start starts it again, and waits until it is ready.
func (r *replica) start() {
	r.t.Helper()
	if err := r.Restart(); err != nil {
		r.t.Fatal(err)
	}
	r.awaitReady()
}

func (r *replica) awaitReady() {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if status := r.ask("/readyz", nil); status == http.StatusOK {
			return
		} else if time.Now().After(deadline) {
			r.t.Fatalf("the replica at %s is not ready: %d", r.address, status)
		}
	}
}

// ask makes a request to the operations listener. 0: it was not answered.
func (r *replica) ask(path string, read func(*http.Response)) (status int) {
	request, err := http.NewRequest(http.MethodGet, "http://"+r.operations+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if read != nil {
		read(response)
	}
	return response.StatusCode
}
