package gateway

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/netconn"
)

// logLines counts the lines of a log.
type logLines struct {
	mu    sync.Mutex // guards the following field
	lines []string
}

// Write implements io.Writer, for one line.
func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *logLines) at(level string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, "level="+level) {
			n++
		}
	}
	return n
}

// ask sends a request over a connection of its own.
func ask(t *testing.T, address, path string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, rawGet(path)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return res, string(body)
}

// TestAttackAllConnectionsTaken checks that a client that takes all connections, and
// more, neither keeps the gateway from reporting that it is alive nor fills its log.
func TestAttackAllConnectionsTaken(t *testing.T) {
	var logged logLines
	const limit = 60
	r := newRealGateway(t, Config{HTTPSettings: HTTPSettings{MaxConnections: limit}, Logger: slog.New(slog.NewTextHandler(&logged, nil))}, nil)
	var taken []net.Conn
	for range limit / 2 {
		taken = append(taken, openRaw(t, r, rawGet("/v1/events?watch=a")))
	}
	waitIdle()
	for range limit/2 + 3*netconn.ReservedConnections { // these send nothing
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		taken = append(taken, c)
	}
	for range 20 {
		for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
			if res, body := ask(t, r.address, path); res.StatusCode != 200 || !strings.HasPrefix(body, want) || !res.Close {
				t.Fatalf("%s: %s, %q, %t", path, res.Status, body, res.Close)
			}
		}
	}
	if n := r.gateway.doors.Count(); n > limit+netconn.ReservedConnections {
		t.Errorf("%d connections are open, of %d and %d at most", n, limit, netconn.ReservedConnections)
	}
	res, body := ask(t, r.address, "/v1/events?watch=a")
	if res.StatusCode != 200 || !strings.Contains(body, "connections are open, of 60 at most") || !strings.Contains(body, `"overloaded"`) {
		t.Errorf("a stream: %s, %q", res.Status, body)
	}
	res, body = ask(t, r.address, "/v1/watches/a/resources")
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !res.Close {
		t.Errorf("a list: %s, %q", res.Status, body)
	}
	if n := logged.at("WARN"); n != 1 {
		t.Errorf("%d warnings, want 1: %q", n, logged.lines)
	}
	r.write("k", 2, `"news"`)
	for _, c := range taken[:limit/2] {
		if err := c.(*rawStream).until(`"news"`); err != nil {
			t.Fatalf("a stream that was open before: %v", err)
		}
	}
	for _, c := range taken {
		c.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); r.gateway.doors.Count() > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are counted", r.gateway.doors.Count())
		}
	}
	openRaw(t, r, rawGet("/v1/events?watch=a")).Close()
}

// TestLongestIdleConnectionGoesFirst checks which connection is closed when there are
// too many: the longest idle one, and none that is active.
func TestLongestIdleConnectionGoesFirst(t *testing.T) {
	secure, roots := certificate(t)
	r := newRealGateway(t, Config{HTTPSettings: HTTPSettings{MaxConnections: 10}}, secure)
	var idle []*handStream
	request := func(s *handStream) error {
		_, err := io.WriteString(s.Conn, rawGet("/healthz"))
		return errors.Join(err, s.until("version"))
	}
	for i := range 9 {
		s := sendHand(t, r.address, roots, rawGet("/healthz"))
		if err := s.until("version"); err != nil {
			t.Fatal(err)
		}
		waitIdleConnections(t, r, i+1)
		idle = append(idle, s)
	}
	stream := openHand(t, r.address, roots, rawGet("/v1/events?watch=a"))
	if err := request(idle[0]); err != nil { // it is no longer the longest idle one
		t.Fatal(err)
	}
	waitIdleConnections(t, r, 9)
	openHand(t, r.address, roots, rawGet("/v1/events?watch=a"))
	openHand(t, r.address, roots, rawGet("/v1/events?watch=a"))
	for i, s := range idle {
		if err, gone := request(s), i == 1 || i == 2; gone != (err != nil) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	r.write("k", 2, `"news"`)
	if err := stream.until(`"news"`); err != nil {
		t.Error(err)
	}
}

func waitIdleConnections(t *testing.T, r *realGateway, want int) {
	t.Helper()
	for n := -1; n != want; <-time.After(time.Millisecond) {
		n = r.gateway.doors.Waiting()
	}
}
