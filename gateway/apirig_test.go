package gateway

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
	"github.com/watchtide/watchtide/internal/log"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// apiRig is a gateway, as operators see it, behind a real HTTP server on its own port
// and an in-memory gRPC server. It has three watches: notes can be written, hosts
// cannot, and silent is never primed.
type apiRig struct {
	t        *testing.T
	gateway  *Gateway
	registry *watch.Registry
	notes    *notebook
	url      string
	grpc     api.WatchServiceClient
}

func newAPIRig(t *testing.T, c Config) *apiRig {
	t.Helper()
	r := &apiRig{t: t, registry: watch.NewRegistry(), notes: newNotebook()}
	t.Cleanup(r.registry.Close)
	r.add(streamConfig("notes", r.notes))
	r.add(watch.Config{Name: "hosts", SourceName: "machine", Source: fixed(
		gatewaytest.Resource("default/a", 5, `{"n":1}`), gatewaytest.Resource("default/b", 6, `{"n":2}`), gatewaytest.Resource("other/c", 7, `{"n":3}`),
	)})
	r.add(watch.Config{Name: "silent", SourceName: "broken", Source: stream.SourceFunc(
		func(ctx context.Context, _ stream.Resume, _ stream.Sink) error { <-ctx.Done(); return ctx.Err() },
	)})
	c.Registry = r.registry
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.PrimeWait == 0 {
		c.PrimeWait = 20 * time.Millisecond
	}
	c.Metrics = true
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r.gateway = g
	r.primed("notes")
	r.primed("hosts")
	server := httptest.NewServer(g.OperationsHandler())
	t.Cleanup(server.Close)
	r.url = server.URL
	r.grpc = dialGRPC(t, g)
	return r
}

// dialGRPC serves a gateway over in-memory gRPC and connects to it.
func dialGRPC(t *testing.T, g *Gateway, options ...grpc.DialOption) api.WatchServiceClient {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := rpc.New(g.calls, nil, nil)
	served := make(chan error, 1)
	go func() { served <- rpc.Serve(server, listener) }()
	conn, err := grpc.NewClient("passthrough:gateway", append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("gRPC server: %v", err)
		}
	})
	return api.NewWatchServiceClient(conn)
}

// streamConfig declares a watch that can be written.
func streamConfig(name string, n *notebook) watch.Config {
	return watch.Config{Name: name, SourceName: "local", Source: n, Writer: n}
}

func (r *apiRig) add(c watch.Config) *watch.Watch {
	r.t.Helper()
	w, err := r.registry.Add(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// primed waits until a watch is primed.
func (r *apiRig) primed(name string) {
	r.t.Helper()
	w, _ := r.registry.Watch(name)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.Prime(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// holds waits until a watch has so many resources: a store publishes what was written a moment
// later.
func (r *apiRig) holds(name string, resources int) {
	r.t.Helper()
	w, _ := r.registry.Watch(name)
	patience := time.After(10 * time.Second)
	for {
		changed := w.Changed()
		if w.Snapshot().Count() == resources {
			return
		}
		select {
		case <-changed:
		case <-patience:
			r.t.Fatalf("%s has %d resources, want %d", name, w.Snapshot().Count(), resources)
		}
	}
}

// reply is an answer that was read completely.
type reply struct {
	*http.Response
	text string
}

// send sends a request; headers are "Name: value".
func (r *apiRig) send(method, path, body string, headers ...string) reply {
	r.t.Helper()
	return sendBy(r.t, http.DefaultClient, method, r.url+path, body, headers)
}

// sendBy sends a request, and reads the answer.
func sendBy(t *testing.T, c *http.Client, method, url, body string, headers []string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res, string(text)}
}

func (r *apiRig) get(path string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodGet, path, "", headers...)
}

// bodyFor returns the body for a request of the method. Methods that refuse a body
// get none, since that refusal would hide any other.
func bodyFor(method, body string) string {
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodDelete {
		return ""
	}
	return body
}

// want checks the status, and the body if body is not empty.
func (a reply) want(t *testing.T, status int, body string) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s %s: %s %.500s, want %d", a.Request.Method, a.Request.URL, a.Status, a.text, status)
	}
	if body != "" && a.text != body {
		t.Errorf("%s %s:\n got %.500s\nwant %.500s", a.Request.Method, a.Request.URL, a.text, body)
	}
}

// wantProblem checks that the answer is a problem, and its content.
func (a reply) wantProblem(t *testing.T, status int, parameter, detail string) {
	t.Helper()
	var p problem.Problem
	if err := json.Unmarshal([]byte(a.text), &p); err != nil {
		t.Errorf("%s %s: %s: %v in %q", a.Request.Method, a.Request.URL, a.Status, err, a.text)
		return
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if a.StatusCode != status || p.Status != status || p.Parameter != parameter || !strings.Contains(p.Detail, detail) {
		t.Errorf("%s %s: %s %s, want %d, parameter %q, detail with %q", a.Request.Method, a.Request.URL, a.Status, a.text, status, parameter, detail)
	}
	if p.Type != "about:blank" || p.Title != http.StatusText(status) {
		t.Errorf("%s %s: type %q, title %q", a.Request.Method, a.Request.URL, p.Type, p.Title)
	}
}

// fixed is a source whose snapshot never changes.
func fixed(resources ...stream.Resource) stream.Source {
	return stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		if err := sink.Reset("e1"); err != nil {
			return err
		}
		last := uint64(1)
		for _, one := range resources {
			if err := sink.Upsert(one); err != nil {
				return err
			}
			last = max(last, one.Revision)
		}
		if err := sink.Commit(last); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// notebook is a writable source of in-memory resources, of at most 2 MiB each.
type notebook struct {
	epoch string // static after construction

	mu        sync.Mutex // guards the following fields
	revision  uint64
	resources map[string]stream.Resource
	changes   []log.Change  // all changes so far
	changed   chan struct{} // closed at the next change, then replaced
	broken    error         // what writes return, if not nil
}

const notebookLimit = 2 << 20

func newNotebook() *notebook {
	return &notebook{epoch: "e1", revision: 1, resources: map[string]stream.Resource{}, changed: make(chan struct{})}
}

// Watch implements stream.Source.
func (n *notebook) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	if err := sink.Reset(n.epoch); err != nil {
		return err
	}
	n.mu.Lock()
	snapshot, revision, seen := slices.Collect(maps.Values(n.resources)), n.revision, len(n.changes)
	n.mu.Unlock()
	if err := gatewaytest.UpsertAll(sink, snapshot); err != nil {
		return err
	}
	if err := sink.Commit(revision); err != nil {
		return err
	}
	for {
		n.mu.Lock()
		changes, changed := n.changes[seen:], n.changed
		n.mu.Unlock()
		seen += len(changes)
		for _, c := range changes {
			if err := passOn(sink, c); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func passOn(sink stream.Sink, c log.Change) error {
	err := error(nil)
	if c.Deleted {
		err = sink.Delete(c.Key, c.Revision)
	} else {
		err = sink.Upsert(c.Resource)
	}
	if err != nil {
		return err
	}
	return sink.Commit(c.Revision)
}

// Put implements stream.Writer.
func (n *notebook) Put(_ context.Context, r stream.PutRequest) (stream.Resource, bool, error) {
	value, ok := stream.CompactJSON(slices.Clone(r.Value))
	if !ok {
		return stream.Resource{}, false, &stream.InvalidError{What: "value", Got: string(r.Value), Want: "JSON"}
	}
	if len(value) > notebookLimit {
		return stream.Resource{}, false, &stream.TooLargeError{What: "value", Size: int64(len(value)), Limit: notebookLimit}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	old, err := n.check(r.Key, r.IfRevision)
	if err != nil {
		return stream.Resource{}, false, err
	}
	stored := stream.Resource{Key: r.Key, Revision: n.revision + 1, Value: value}
	if !r.ValidateOnly {
		n.resources[r.Key] = stored
		n.commit(log.Change{Resource: stored})
	}
	return stored, old == 0, nil
}

// Delete implements stream.Writer.
func (n *notebook) Delete(_ context.Context, r stream.DeleteRequest) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, err := n.check(r.Key, r.IfRevision)
	if err != nil {
		return false, err
	}
	if old > 0 && !r.ValidateOnly {
		delete(n.resources, r.Key)
		n.commit(log.Change{Resource: stream.Resource{Key: r.Key, Revision: n.revision + 1}, Deleted: true})
	}
	return old > 0, nil
}

func (n *notebook) check(key string, want *uint64) (uint64, error) {
	got := n.resources[key].Revision
	if n.broken != nil {
		return 0, n.broken
	}
	if want != nil && *want != got {
		return 0, &stream.ConflictError{Key: key, Want: *want, Got: got}
	}
	return got, nil
}

func (n *notebook) commit(c log.Change) {
	n.revision++
	n.changes = append(n.changes, c)
	close(n.changed)
	n.changed = make(chan struct{})
}
