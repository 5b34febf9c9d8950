package commands

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/watchtide/watchtide/access"
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

// TestNoGRPC: without a section or a flag there is no gRPC, which is logged.
func TestNoGRPC(t *testing.T) {
	r := start(t, "serve", "--http", "127.0.0.1:0", "--operations", "127.0.0.1:0")
	r.logs.await(t, `"msg":"listening"`)
	if logs := r.logs.String(); !strings.Contains(logs, `"grpc":"off"`) {
		t.Errorf("the log:\n%s", logs)
	}
}

// TestNothingIsOpenBeforeTheFirstSnapshot: while the source of a required watch does not
// answer, operators see why, and clients are refused.
// TestDefaultOfPrimeWaitIsLogged: what is in effect, and not what is configured.
func TestDefaultOfPrimeWaitIsLogged(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	r := start(t, "serve", "--http", "127.0.0.1:0", "--operations", "off")
	if logs := r.logs.await(t, `"msg":"waiting for the watches to be primed"`); !strings.Contains(logs, `"at_most":"5s"`) {
		t.Errorf("the log does not say that it waits for 5s:\n%s", logs)
	}
	r.logs.await(t, `"msg":"listening"`)
	r.signals <- syscall.SIGTERM
	r.awaitCode()
}

func TestNothingIsOpenBeforeTheFirstSnapshot(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	conf := file(t, "gateway.yaml", `
http: { listen: "`+free.Addr().String()+`" }
operations: { listen: "127.0.0.1:0" }
stream: { prime_wait: 1h }
sources: { backend: { type: grpc, address: "`+silent.Addr().String()+`" } }
watches: { services: { source: backend, required: true } }
`)
	r := start(t, "serve", "--config", conf)
	logs := r.logs.await(t, `"msg":"waiting for the watches to be primed"`)
	_, address, _ := strings.Cut(logs, `"operations":"`)
	address, _, _ = strings.Cut(address, `"`)
	if status, body := fetch(t, http.DefaultTransport, "GET", "http://"+address+"/readyz", ""); status != 503 || !strings.Contains(body, `"watch":"services"`) {
		t.Errorf("operators get %d %s", status, body)
	}
	if c, err := net.Dial("tcp", free.Addr().String()); err == nil {
		c.Close()
		t.Error("clients can connect")
	}
	r.signals <- syscall.SIGTERM
	if code := r.awaitCode(); code != 0 || strings.Contains(r.logs.String(), `"msg":"listening"`) {
		t.Errorf("exit code %d; the log:\n%s", code, r.logs)
	}
}

// TestBothNamesOfThisMachineWork: a page at localhost and one at 127.0.0.1 may read and sign in, those of
// the gateway and those of the origins that it allows.
func TestBothNamesOfThisMachineWork(t *testing.T) {
	secret, line, err := access.NewToken("sam", nil)
	if err != nil {
		t.Fatal(err)
	}
	g := serve(t, "--config", file(t, "gateway.yaml", `
http: { allowed_origins: ["http://127.0.0.1:3000", "http://localhost:3000"] }
sources: { local: { type: store } }
watches: { notes: { source: local, allow: [{ role: everybody, read: "true" }] } }
roles: { everybody: { when: "true" } }
auth: { tokens_file: `+file(t, "tokens", line)+` }
`))
	_, port, err := net.SplitHostPort(g.http)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "localhost"} {
		for _, origin := range []string{"http://" + name + ":" + port, "http://" + name + ":3000"} {
			send := func(method string, header http.Header) *http.Response {
				request, err := http.NewRequestWithContext(t.Context(), method, g.url()+"/v1/session", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				header.Set("Origin", origin)
				request.Header, request.Host = header, name+":"+port
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { answer.Body.Close() })
				return answer
			}
			begun := send(http.MethodPost, http.Header{"Authorization": {"Bearer " + secret}})
			if begun.StatusCode != http.StatusNoContent || len(begun.Cookies()) != 1 {
				t.Errorf("%s at %s: %s, cookies %v", origin, name, begun.Status, begun.Cookies())
				continue
			}
			cookie := begun.Cookies()[0]
			answer := send(http.MethodGet, http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}})
			who, err := io.ReadAll(answer.Body)
			if err != nil || !strings.Contains(string(who), `"name":"sam"`) || cookie.Secure {
				t.Errorf("%s at %s: %s %s, %v, %v", origin, name, answer.Status, who, cookie, err)
			}
		}
	}
}
