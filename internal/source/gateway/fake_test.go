package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// fake is a server that sends the answers of a test, one after the other. It
// serves on pipes, so that a test may run in a bubble of fake time.
type fake struct {
	// Static after construction.
	turns  []turn // the last one is for all requests that follow
	conns  chan net.Conn
	closed chan struct{}

	mu       sync.Mutex // guards the following field
	requests []*http.Request
}

// turn answers one request.
type turn func(w http.ResponseWriter, r *http.Request)

// serve starts a fake server and returns it as an upstream. The caller must call
// the returned function before the test ends.
func serve(t *testing.T, c Config, turns ...turn) (*fake, *Upstream, func()) {
	t.Helper()
	f := &fake{turns: turns, conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: f}
	served := make(chan error, 1)
	go func() { served <- server.Serve(f) }()
	if c.URL == "" {
		c.URL = "http://gateway.test"
	}
	c.network = f.dial
	u, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return f, u, func() {
		close(f.closed)
		_ = server.Close()
		<-served
	}
}

// Accept implements net.Listener.
func (f *fake) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (f *fake) Close() error { return nil }

// Addr implements net.Listener.
func (f *fake) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (f *fake) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case f.conns <- there:
		return here, nil
	case <-f.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	at := len(f.requests)
	f.requests = append(f.requests, r)
	f.mu.Unlock()
	f.turns[min(at, len(f.turns)-1)](w, r)
}

// ids are the positions of the requests so far.
func (f *fake) ids() (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		ids = append(ids, r.Header.Get("Last-Event-ID"))
	}
	return ids
}

// replies answers with events, then ends cleanly.
func replies(text ...string) turn {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, text...) }
}

// breaks answers with events, then breaks the connection.
func breaks(text ...string) turn {
	return func(w http.ResponseWriter, _ *http.Request) {
		write(w, text...)
		panic(http.ErrAbortHandler)
	}
}

// stalls answers with events, then is silent until the client disconnects.
func stalls(text ...string) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		write(w, text...)
		<-r.Context().Done()
	}
}

// refuses answers with a problem. headers are names and values.
func refuses(status int, detail string, headers ...string) turn {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d,"detail":%q}`, http.StatusText(status), status, detail)
	}
}

func write(w http.ResponseWriter, text ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, strings.Join(text, ""))
	_ = http.NewResponseController(w).Flush()
}

// Events of the watch w, each with an id if it is not "".
const (
	hello = "retry: 2000\n\nevent: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000,\"watches\":[{\"watch\":\"w\",\"mode\":\"snapshot\"}]}\n\n"
	beat  = ": heartbeat\n\n"
)

func event(name, fields, id string) string {
	return eventOf("w", name, fields, id)
}

func eventOf(watch, name, fields, id string) string {
	if id != "" {
		id = "id: " + id + "\n"
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"watch\":%q%s}\n%s\n", name, name, watch, fields, id)
}

func reset(id string) string { return event("reset", `,"reason":"initial"`, id) }

func upsert(key string, revision int, value, id string) string {
	return event("upsert", fmt.Sprintf(`,"key":%q,"revision":"%d","value":%s`, key, revision, value), id)
}

func remove(key string, revision int, id string) string {
	return event("delete", fmt.Sprintf(`,"key":%q,"revision":"%d"`, key, revision), id)
}

func endOfSnapshot(revision, count int, id string) string {
	return event("end_of_snapshot", fmt.Sprintf(`,"revision":"%d","count":%d`, revision, count), id)
}

func bookmark(revision int, id string) string {
	return event("bookmark", fmt.Sprintf(`,"revision":"%d"`, revision), id)
}

func status(state, reason, id string) string {
	return event("status", fmt.Sprintf(`,"state":%q,"since":"2026-01-02T03:04:05Z","reason":%q`, state, reason), id)
}

func goodbye(reason string, retryMS int) string {
	return fmt.Sprintf("event: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":%q,\"retry_ms\":%d}\n\n", reason, retryMS)
}

// primed is a snapshot at revision 2 of epoch e.
func primed() string {
	return hello + reset("w@e-0/2") + upsert("x", 1, "1", "") + upsert("y", 2, "1", "") + endOfSnapshot(2, 2, "w@e-2")
}

// calls is a Sink that records its calls.
//
// Owned by the goroutine that calls Watch, .
type calls struct {
	stream.PlainSink
	mu     sync.Mutex // guards the following fields
	made   []string
	marked int
	on     func(call string) error // what a call returns; nil: nothing
}

func (c *calls) call(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	c.mu.Lock()
	c.made = append(c.made, text)
	c.mu.Unlock()
	if c.on != nil {
		return c.on(text)
	}
	return nil
}

// String is all calls, one on each line.
func (c *calls) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.made, "\n")
}

// Mark implements stream.SinkExtension.
func (c *calls) Mark() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marked = len(c.made)
}

// Rewind implements stream.SinkExtension: it takes calls back.
func (c *calls) Rewind() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.made) > c.marked && !strings.HasPrefix(c.made[len(c.made)-1], "commit") && !strings.HasPrefix(c.made[len(c.made)-1], "reset") {
		c.made = c.made[:len(c.made)-1]
	}
	return nil
}

// RaiseHorizon implements stream.SinkExtension.
func (c *calls) RaiseHorizon(revision uint64) error { return c.call("horizon %d", revision) }

func (c *calls) Reset(epoch string) error { return c.call("reset %s", epoch) }

func (c *calls) Upsert(r stream.Resource) error {
	if r.Encoding != "" {
		return c.call("upsert %q %d %s %s", r.Key, r.Revision, r.Value, r.Encoding)
	}
	return c.call("upsert %q %d %s", r.Key, r.Revision, r.Value)
}

func (c *calls) Delete(key string, revision uint64) error {
	return c.call("delete %q %d", key, revision)
}

func (c *calls) Commit(revision uint64) error { return c.call("commit %d", revision) }

func (c *calls) Status(state stream.State, reason string) error {
	return c.call("status %v %s", state, reason)
}
