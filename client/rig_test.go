package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a listener whose connections are pipes, so that a test may run in a
// bubble of fake time.
type memory struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), done: make(chan struct{})} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, fmt.Errorf("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve starts an HTTP server on pipes and returns it as seen by a client. The
// caller must call the returned function before the test ends.
func serve(t *testing.T, handler http.HandlerFunc) (*Client, func()) {
	t.Helper()
	m := newMemory()
	server := &http.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(m) }()
	s, err := New("http://gateway.test/", Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.transport.(*http.Transport).Proxy = nil
	s.transport.(*http.Transport).DialContext = m.dial
	return s, func() {
		s.Close()
		server.Close()
		<-served
	}
}

// script is what a server sends in one connection after the other.
type script struct {
	mu       sync.Mutex
	requests []*http.Request
	turns    []turn
}

// turn answers one connection. Static.
type turn func(w http.ResponseWriter, r *http.Request)

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	at := len(s.requests)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if at < len(s.turns) {
		s.turns[at](w, r)
		return
	}
	http.Error(w, "no turn left", http.StatusGone)
}

// resumeIDs returns the position of each request.
func (s *script) resumeIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.requests {
		out = append(out, r.Header.Get("Last-Event-ID"))
	}
	return out
}

// replies writes text as a stream of events, then ends the response cleanly.
func replies(text string) turn {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, text) }
}

// breaks writes text, then breaks the connection.
func breaks(text string) turn {
	return func(w http.ResponseWriter, _ *http.Request) {
		write(w, text)
		panic(http.ErrAbortHandler)
	}
}

// stalls writes text, then is silent until the client disconnects.
func stalls(text string) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		write(w, text)
		<-r.Context().Done()
	}
}

// refuses answers with a problem.
func refuses(status int, header ...string) turn { return refusesWatch("", status, header...) }

// refusesWatch answers with a problem of one watch.
func refusesWatch(watch string, status int, header ...string) turn {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d,"detail":"so it is","watch":%q}`, http.StatusText(status), status, watch)
	}
}

func write(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

// Pieces of a stream of the watch w.
const (
	hello   = "retry: 2000\n\nevent: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000,\"watches\":[{\"watch\":\"w\",\"mode\":\"snapshot\"}]}\n\n"
	reset   = "event: reset\ndata: {\"type\":\"reset\",\"watch\":\"w\",\"reason\":\"initial\"}\n\n"
	beat    = ": heartbeat\n\n"
	allGone = "event: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":\"complete\",\"retry_ms\":0}\n\n"
)

func upsert(key string, revision int, id bool) string {
	return fmt.Sprintf("event: upsert\ndata: {\"type\":\"upsert\",\"watch\":\"w\",\"key\":%q,\"revision\":\"%d\",\"value\":{\"n\":%d}}\n%s\n",
		key, revision, revision, idLine(revision, id))
}

func remove(key string, revision int, id bool) string {
	return fmt.Sprintf("event: delete\ndata: {\"type\":\"delete\",\"watch\":\"w\",\"key\":%q,\"revision\":\"%d\"}\n%s\n",
		key, revision, idLine(revision, id))
}

func endOfSnapshot(revision, count int) string {
	return fmt.Sprintf("event: end_of_snapshot\ndata: {\"type\":\"end_of_snapshot\",\"watch\":\"w\",\"revision\":\"%d\",\"count\":%d}\n%s\n",
		revision, count, idLine(revision, true))
}

func idLine(revision int, id bool) string {
	if !id {
		return ""
	}
	return fmt.Sprintf("id: w@e-%d\n", revision)
}

func goodbye(reason string, retryMS int) string {
	return fmt.Sprintf("event: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":%q,\"retry_ms\":%d}\n\n", reason, retryMS)
}

// recorder records what a loop over Watch gets. Owned by the goroutine of the loop.
type recorder struct {
	events []string // type, key and id
	lost   []string
	waits  []int64 // ms
	each   func(Event, error) error
}

// record loops to the end, or to an error of each, and returns the error of the end.
func (r *recorder) record(changes iter.Seq2[Event, error]) error {
	for e, err := range changes {
		switch {
		case e.Err != nil:
			r.lost = append(r.lost, e.Err.Error())
			r.waits = append(r.waits, e.Wait.Milliseconds())
			continue
		case err == nil:
			r.events = append(r.events, text(e))
		case e.Watch == "" || r.each == nil:
			return err
		}
		if r.each != nil {
			if err := r.each(e, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func text(e Event) string {
	text := string(e.Type)
	for _, part := range []string{e.Key, e.ID} {
		if part != "" {
			text += " " + part
		}
	}
	return text
}

func (r *recorder) String() string { return strings.Join(r.events, "\n") }
