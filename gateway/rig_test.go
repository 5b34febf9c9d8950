package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/conversation"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// rig is a gateway behind the real net/http server on an in-memory network, with
// scripted sources and the real net/http client. In a synctest bubble all of it runs
// in fake time. Helpers called after settle see everything that can have happened
// without more time passing.
type rig struct {
	t        *testing.T
	gateway  *Gateway
	registry *watch.Registry
	sources  map[string]*script
	network  *memoryListener
	rpc      *memoryListener
	private  *memoryListener // for operators
	client   *http.Client
	gzip     bool               // requests ask for it
	stop     context.CancelFunc // begins the shutdown
	hurry    context.CancelFunc // begins it without a delay
	served   chan error         // what Serve returned
}

// newRig starts a gateway that serves the named watches.
func newRig(t *testing.T, c Config, watches ...string) *rig {
	t.Helper()
	r := &rig{t: t, registry: watch.NewRegistry(), sources: map[string]*script{}, network: newMemoryListener(), rpc: newMemoryListener(), private: newMemoryListener(), served: make(chan error, 1)}
	for _, name := range watches {
		r.add(watch.Config{Name: name})
	}
	c.Registry, c.DrainDelay = r.registry, cmp.Or(c.DrainDelay, -1)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	c.Pump, c.Instance = pumpUnderTest(), "test"
	if r.gateway, err = New(c); err != nil {
		t.Fatal(err)
	}
	r.gateway.hijacked = newHijackedStreams(newMemoryHangupWatcher)
	if c.Pump == PumpShards {
		r.gateway.shards = newShards(r.gateway.deps, newMemorySockets(), 2, nil)
	}
	ctx, end := context.WithCancelCause(context.Background())
	r.stop, r.hurry = func() { end(nil) }, func() { end(fmt.Errorf("a test: %w", ErrNoDelay)) }
	go func() {
		r.served <- r.gateway.Serve(ctx, Listeners{HTTP: r.network, GRPC: r.rpc, Operations: r.private})
	}()
	transport := &http.Transport{DialContext: r.network.dial, DisableCompression: true}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		r.stop()
		if err := <-r.served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		r.registry.Close()
	})
	return r
}

// add adds a watch with a scripted source.
func (r *rig) add(c watch.Config) {
	r.t.Helper()
	s := &script{steps: make(chan func(stream.Sink) error)}
	c.SourceName, c.Source, c.Logger = "scripted", s, slog.New(slog.DiscardHandler)
	if _, err := r.registry.Add(c); err != nil {
		r.t.Fatal(err)
	}
	r.sources[c.Name] = s
}

// script is a source that does what a test tells it.
type script struct{ steps chan func(stream.Sink) error }

// Watch implements stream.Source.
func (s *script) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	for {
		select {
		case step := <-s.steps:
			if err := step(sink); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// resource returns an upsert for a test.
func resource(key string, revision uint64, value string) stream.Resource {
	return stream.Resource{Key: key, Revision: revision, Value: []byte(value)}
}

// do makes the source of a watch take a step.
func (r *rig) do(watch string, step func(stream.Sink) error) {
	r.sources[watch].steps <- step
}

// prime gives a watch its first snapshot.
func (r *rig) prime(watch string, revision uint64, resources ...stream.Resource) {
	r.do(watch, func(sink stream.Sink) error {
		return errors.Join(sink.Reset("e1"), upsertAll(sink, resources), sink.Commit(revision))
	})
}

// commit changes resources in one transaction.
func (r *rig) commit(watch string, revision uint64, resources ...stream.Resource) {
	r.do(watch, func(sink stream.Sink) error {
		return errors.Join(upsertAll(sink, resources), sink.Commit(revision))
	})
}

func upsertAll(sink stream.Sink, resources []stream.Resource) error {
	for _, one := range resources {
		if err := sink.Upsert(one); err != nil {
			return err
		}
	}
	return nil
}

// exchange is one response as its client sees it.
type exchange struct {
	*http.Response
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end of the body

	mu   sync.Mutex // guards the following fields
	body bytes.Buffer
	err  error // at the end of the body; nil: it ended cleanly
}

// get sends a request and reads the answer as it arrives. Headers are "Name: value".
func (r *rig) get(path string, headers ...string) *exchange {
	r.t.Helper()
	return r.request(http.MethodGet, path, headers...)
}

func (r *rig) request(method, path string, headers ...string) *exchange {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	if r.gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	unzip(res)
	x := &exchange{Response: res, cancel: cancel, ended: make(chan struct{})}
	go x.read()
	r.t.Cleanup(func() { cancel(); <-x.ended })
	return x
}

func (x *exchange) read() {
	defer close(x.ended)
	defer x.Body.Close()
	p := make([]byte, 64<<10)
	for {
		n, err := x.Body.Read(p)
		x.mu.Lock()
		x.body.Write(p[:n])
		if err != nil && err != io.EOF {
			x.err = err
		}
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// text returns everything received so far.
func (x *exchange) text() string {
	synctest.Wait()
	return x.received()
}

func (x *exchange) received() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.body.String()
}

// take returns what was received since the last take.
func (x *exchange) take() string {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.body.String()
	x.body.Reset()
	return s
}

// over reports whether the body has ended, and how.
func (x *exchange) over() (bool, error) {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	return conversation.Closed(x.ended), x.err
}

// memoryListener is a network of one host: net.Pipe, without a kernel.
type memoryListener struct {
	conns  chan net.Conn
	done   chan struct{}
	closer sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.closer.Do(func() { close(l.done) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "127.0.0.1:1" } // no other host reaches it

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- &memoryConn{Conn: there}:
		return here, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rawConn is a client that speaks HTTP by hand.
type rawConn struct {
	net.Conn
	*bufio.Reader
}

// dial opens a connection and sends what is given as it is.
func (r *rig) dial(request string) *rawConn {
	r.t.Helper()
	c, err := r.network.dial(context.Background(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		r.t.Fatal(err)
	}
	return &rawConn{c, bufio.NewReader(c)}
}

// Read implements net.Conn.
func (c *rawConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// rawGet returns a request head of HTTP/1.1.
func rawGet(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: gateway\r\nAccept: text/event-stream\r\n\r\n"
}

// clientNumber returns a different client for each i, each in an IPv6 network of its
// own.
func clientNumber(i int) admission.Client {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], uint32(i))
	return admission.ClientOf(netip.AddrFrom16(a))
}
