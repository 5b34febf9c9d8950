package commands

import (
	"net"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/config"
)

// TestOperationsListener: the operators' endpoints are on the operations listener,
// and not on a public one that other machines can reach.
func TestOperationsListener(t *testing.T) {
	g := serve(t, "--http", "0.0.0.0:0", "--auth", "none")
	g.awaitPrimed()
	_, port, err := net.SplitHostPort(g.http)
	if err != nil {
		t.Fatal(err)
	}
	g.http = "127.0.0.1:" + port
	for _, path := range []string{"/metrics", "/v1/subscribers", "/debug/pprof/"} {
		if status, body := g.do("GET", path, ""); status != 404 {
			t.Errorf("%s on the public listener: %d %.200s", path, status, body)
		}
	}
	g.http = g.operations
	for path, want := range map[string]string{
		"/metrics": "watchtide_watch_state", "/v1/subscribers": `"upstreams"`, "/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile",
		"/healthz": "ok", "/": "<html",
	} {
		if status, body := g.do("GET", path, ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s on the operations listener: %d %.200s, want %q", path, status, body, want)
		}
	}
}

// TestOperationsOff: there is no listener, which is logged.
func TestOperationsOff(t *testing.T) {
	if g := serve(t, "--operations", "off"); g.operations != "off" {
		t.Errorf("operations at %q, want off", g.operations)
	}
}

// TestOperationsDefaultIsTaken: a second gateway on a machine starts with the
// defaults, and logs its address for operators.
func TestOperationsDefaultIsTaken(t *testing.T) {
	if l, err := net.Listen("tcp", config.DefaultOperations); err == nil {
		defer l.Close() // otherwise it is in use already
	}
	g := serve(t, "--operations", config.DefaultOperations)
	if g.operations == config.DefaultOperations || !strings.Contains(g.logs.String(), "is taken") {
		t.Errorf("operations at %s; the log:\n%s", g.operations, g.logs)
	}
	g.http = g.operations
	if status, body := g.do("GET", "/healthz", ""); status != 200 {
		t.Errorf("/healthz at the other address: %d %s", status, body)
	}
}
