package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
)

// fake is an API server each of whose answers is a function: for behavior that
// the real one shows rarely, or showed in the past. It lives in a synctest
// bubble, in memory, and speaks HTTP/2.
type fake struct {
	t      *testing.T
	source *Source
	conns  chan net.Conn
	closed chan struct{}

	closing sync.Once

	// The answers; nil: 404. initial answers streaming lists, if set;
	// otherwise watch does, as on a server that does not support them.
	cluster, definition, head, list, watch, initial http.HandlerFunc

	// authorized reports whether a request has a good credential; nil: all have.
	authorized func(*http.Request) bool

	mu   sync.Mutex
	seen []string // requests, shortened
}

// inBubble runs a test against a fake, in a bubble.
func inBubble(t *testing.T, test func(f *fake)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{t: t, conns: make(chan net.Conn), closed: make(chan struct{})}
		f.cluster = replies(200, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"cluster-1"}}`)
		f.head = replies(200, listOf(1, ""))
		server := &httptest.Server{Listener: f, Config: &http.Server{Handler: f}, EnableHTTP2: true, TLS: &tls.Config{ClientAuth: tls.RequestClientCert}}
		server.StartTLS()
		ca := pemOf(server.Certificate())
		f.source = mustNew(t, Config{
			Objects: Objects{Group: "example.com", Version: "v1", Resource: "widgets"}, pageSize: 2, Logger: slog.New(slog.DiscardHandler),
			inCluster: func() (*rest.Config, error) {
				return &rest.Config{
					Host: "https://example.com", Dial: f.dial,
					TLSClientConfig: rest.TLSClientConfig{CAData: ca},
				}, nil
			},
		})
		test(f)
		f.source.Close()
		server.CloseClientConnections()
		server.Close()
	})
}

func (f *fake) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *fake) Close() error {
	f.closing.Do(func() { close(f.closed) })
	return nil
}

func (f *fake) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (f *fake) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case f.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name, answer := "list", f.list
	switch {
	case strings.HasSuffix(r.URL.Path, "/kube-system"):
		name, answer = "cluster", f.cluster
	case strings.Contains(r.URL.Path, "/customresourcedefinitions/"):
		name, answer = "definition", f.definition
	case !strings.HasSuffix(r.URL.Path, "/widgets"):
		name, answer = r.URL.Path, nil
	case q.Get("sendInitialEvents") == "true":
		name, answer = "initial", f.initial
		if answer == nil {
			answer = f.watch
		}
	case q.Get("watch") == "true":
		name, answer = "watch "+q.Get("resourceVersion"), f.watch
	case q.Get("limit") == "1":
		name, answer = "head", f.head
	case q.Get("continue") != "":
		name = "list " + q.Get("continue")
	}
	if f.authorized != nil && !f.authorized(r) {
		replies(401, status(401, "Unauthorized", "Unauthorized: "+r.Header.Get("Authorization")))(w, r)
		return
	}
	f.mu.Lock()
	f.seen = append(f.seen, name)
	f.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	answer(w, r)
}

// requests returns the requests since the last call, without those that
// identify the cluster.
func (f *fake) requests() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, s := range f.seen {
		if s != "cluster" && s != "definition" {
			out = append(out, s)
		}
	}
	f.seen = nil
	return strings.Join(out, ", ")
}

// wantRequests fails unless these requests were made since the last call.
func (f *fake) wantRequests(want string) {
	f.t.Helper()
	if got := f.requests(); got != want {
		f.t.Errorf("requests were\n\t%s\nwant\n\t%s", got, want)
	}
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// replies answers with a code and a body.
func replies(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// sends answers with lines, and ends.
func sends(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		for _, line := range lines {
			fmt.Fprintln(w, line)
			w.(http.Flusher).Flush()
		}
	}
}

// stalls answers with lines, and then stays silent.
func stalls(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sends(lines...)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// runsOut answers with lines, and ends on request.
func runsOut(end <-chan struct{}, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sends(lines...)(w, r)
		w.(http.Flusher).Flush()
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}
}

// inTurn answers with one handler after the other, and then always with the last
// one.
func inTurn(answers ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		next := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		mu.Unlock()
		next(w, r)
	}
}

// widget is an object.
func widget(name string, revision int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"resourceVersion":"%d"}}`, name, revision)
}

// line is an event of a watch.
func line(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object) }

func bookmarkAt(revision int) string {
	return line(bookmark, fmt.Sprintf(`{"kind":"Widget","metadata":{"resourceVersion":"%d"}}`, revision))
}

func markerAt(revision int) string {
	return line(bookmark, fmt.Sprintf(`{"kind":"Widget","metadata":{"resourceVersion":"%d",
		"annotations":{"k8s.io/initial-events-end":"true"}}}`, revision))
}

// status is the server's answer to a request that it does not carry out.
func status(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
}

// listOf is a list, with the mark of the next page if there is one.
func listOf(revision int, next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`,
		revision, next, strings.Join(items, ","))
}

func mustNew(t testing.TB, c Config) *Source {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
