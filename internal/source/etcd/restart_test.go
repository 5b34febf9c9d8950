//go:build servers

package etcd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

// eventSource is a client without a library: it knows the last id, and what it holds.
type eventSource struct {
	t    *testing.T
	id   string
	held map[string]uint64 // revision by key

	// Of the last visit.
	reset   string // why; empty: there was none
	changes int
	bytes   int
}

// visit starts a gateway, follows the watch there until it is up to date, and stops the gateway.
func (c *eventSource) visit(s *server) {
	c.t.Helper()
	registry := streamwatch.NewRegistry()
	defer registry.Close()
	source := newSource(c.t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"})
	w, err := registry.Add(streamwatch.Config{Name: "w", SourceName: "etcd", Source: source})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := w.Prime(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Registry: registry, StreamSettings: gateway.StreamSettings{DrainDelay: -1, Drain: -1}})
	if err != nil {
		c.t.Fatal(err)
	}
	served := httptest.NewServer(g.Handler())
	defer served.Close()
	c.follow(served.URL)
}

// follow reads a stream to its end_of_snapshot, and the id of that.
func (c *eventSource) follow(url string) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, url+"/v1/events?watch=w", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.id != "" {
		request.Header.Set("Last-Event-ID", c.id)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	c.reset, c.changes, c.bytes = "", 0, 0
	over := false
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		c.bytes += len(line)
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "id":
			c.id = value
		case name == "data":
			over = c.event(value) || over
		case name == "" && over:
			return
		}
	}
}

// event applies an event. It reports whether the client is up to date.
func (c *eventSource) event(data string) bool {
	var e struct{ Type, Key, Revision, Reason string }
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		c.t.Fatalf("%v: %s", err, data)
	}
	switch e.Type {
	case "reset":
		c.reset, c.held = e.Reason, map[string]uint64{}
	case "upsert":
		c.changes++
		c.held[e.Key], _ = strconv.ParseUint(e.Revision, 10, 64)
	case "delete":
		c.changes++
		delete(c.held, e.Key)
	}
	return e.Type == "end_of_snapshot"
}

// wants fails unless the client was reset for a reason, and has the server's state.
func (c *eventSource) wants(s *server, reset string) {
	c.t.Helper()
	if c.reset != reset {
		c.t.Errorf("reset %q, want %q", c.reset, reset)
	}
	if missing := difference(c.held, s.list("/a/")); missing != "" {
		c.t.Error(missing)
	}
}

// seventyChanges are made while no gateway runs.
func (s *server) seventyChanges() {
	for i := range 30 {
		s.put(fmt.Sprintf("/a/%08d", 100*i), strconv.Quote(strings.Repeat("y", 300)))
	}
	for i := range 20 {
		s.delete(fmt.Sprintf("/a/%08d", 50*i+7))
	}
	for i := range 10 {
		s.put(fmt.Sprint("/a/short/", i), "1")
		s.delete(fmt.Sprint("/a/short/", i))
	}
	s.put("/b/other", "1")
	s.delete("/b/other")
}

// TestRestartWithoutASnapshot: a gateway that is started knows from the cluster what was deleted
// while none ran. A client comes back without a reset, and is sent what has changed.
func TestRestartWithoutASnapshot(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for i := range 5000 {
		s.put(fmt.Sprintf("/a/%08d", i), strconv.Quote(strings.Repeat("x", 300)))
	}
	c := &eventSource{t: t}
	c.visit(s)
	c.wants(s, "initial")
	whole := c.bytes
	s.seventyChanges()
	c.visit(s)
	c.wants(s, "")
	t.Logf(" history | etcd | 5,000 keys, 70 changes | %d events, %d of %d bytes |", c.changes, c.bytes, whole)
	if c.changes > 100 || c.bytes > whole/100 {
		t.Errorf("%d changes and %d bytes, want at most 100, and %d", c.changes, c.bytes, whole/100)
	}
	s.delete("/a/00004999")
	s.compact()
	s.delete("/a/00004998")
	c.visit(s)
	c.wants(s, "expired")
	s.delete("/a/00004997")
	c.visit(s)
	c.wants(s, "") // what was compacted is older
}

// TestRestartAtAServerThatMayForget: its history is not trusted.
func TestRestartAtAServerThatMayForget(t *testing.T) {
	t.Parallel()
	s := startOldServer(t)
	s.put("/a/1", "1")
	c := &eventSource{t: t}
	c.visit(s)
	s.put("/a/2", "1")
	s.delete("/a/2")
	c.visit(s)
	c.wants(s, "expired")
}

// TestRestartAtARestoredStore: a client of the store before, which has the same id, holds what this
// one never had.
func TestRestartAtARestoredStore(t *testing.T) {
	t.Parallel()
	for _, bump := range []string{"0", "1000000"} {
		t.Run("bump "+bump, func(t *testing.T) {
			s := startServer(t)
			for i := range 50 {
				s.put(fmt.Sprint("/a/", i), "1")
			}
			backup := s.backup()
			s.put("/a/lost", "1")
			c := &eventSource{t: t}
			c.visit(s)
			s.Kill()
			restored := startServer(t, "-restore", filepath.Join(backup, "member.etcd", "member", "snap", "db"), "-bump", bump)
			for i := range 5 {
				restored.put(fmt.Sprint("/a/new/", i), "1")
			}
			c.visit(restored)
			c.wants(restored, "expired")
		})
	}
}

// TestSnapshotDoesNotWaitLong for the history.
func TestSnapshotDoesNotWaitLong(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for i := range 3000 {
		s.put("/a/1", fmt.Sprint(i))
	}
	began := time.Now()
	c := &eventSource{t: t}
	c.visit(s)
	c.wants(s, "initial")
	t.Logf(" history | etcd | 3,000 revisions of one key | first state after %v |", time.Since(began).Round(time.Millisecond))
}
