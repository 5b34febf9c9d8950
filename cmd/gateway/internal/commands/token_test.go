package commands

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// guarded is a server that wants a token, and keeps what it was sent.
type guarded struct {
	*httptest.Server
	rotated func(token string) // called before a stream ends; nil: no streams

	mu   sync.Mutex
	want string
	got  []string
}

// newGuarded serves one watch, notes, to whoever has the token. Each stream ends at once,
// and the token with it: the next one is the last one with ".next" added. The third one is
// revoked.
func newGuarded(t *testing.T, want string) *guarded {
	t.Helper()
	g := &guarded{want: want}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	token := r.Header.Get("Authorization")
	g.got = append(g.got, token)
	if token != "Bearer "+g.want {
		w.Header().Set("WWW-Authenticate", `Bearer realm="watchtide"`)
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"status":401,"title":"Unauthorized","detail":"a credential is wanted"}`)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/events") {
		io.WriteString(w, `{"resources":[{"key":"a","revision":"1","value":1}]}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	reason := "token_expired"
	if strings.HasSuffix(g.want, ".next.next") {
		reason = "revoked"
	}
	g.want += ".next"
	g.rotated(g.want)
	fmt.Fprintf(w, "event: hello\ndata: {\"type\":\"hello\",\"heartbeat_ms\":15000,\"watches\":[]}\n\nevent: goodbye\ndata: {\"type\":\"goodbye\",\"reason\":%q,\"retry_ms\":1}\n\n", reason)
}

func TestGetSendsTheToken(t *testing.T) {
	g := newGuarded(t, "tOkEn1")
	named := file(t, "token", "tOkEn1\n")
	t.Setenv("WATCHTIDE_TOKEN", "")
	for name, c := range map[string]struct {
		variable string
		args     []string
		code     int
		want     string
	}{
		"a file":           {"wrong", []string{"--token-file", named}, 0, ""},
		"the variable":     {"tOkEn1", nil, 0, ""},
		"none":             {"", nil, 1, "401 Unauthorized: a credential is wanted; want --token-file FILE, or a token in WATCHTIDE_TOKEN"},
		"a wrong variable": {"sEcReT", nil, 1, "want another token in WATCHTIDE_TOKEN"},
		"a wrong file":     {"", []string{"--token-file", file(t, "wrong", "sEcReT")}, 1, "want another token in the file "},
		"no file":          {"tOkEn1", []string{"--token-file", named + "x"}, 2, "token file"},
		"another machine":  {"tOkEn1", []string{"--server", "http://192.0.2.1"}, 2, "over plain HTTP"},
		"not a URL":        {"tOkEn1", []string{"--server", "localhost"}, 2, "want a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WATCHTIDE_TOKEN", c.variable)
			code, stdout, stderr := command(t, append([]string{"get", "notes", "--server", g.URL}, c.args...)...)
			if code != c.code || (stdout != "") != (code == 0) || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "sEcReT") {
				t.Errorf("exit code %d, want %d: %s%s", code, c.code, stdout, stderr)
			}
		})
	}
}

// The file is read for each connection. Access that is revoked ends the command.
func TestWatchReadsTheTokenFileAgain(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	g := newGuarded(t, "tOkEn1")
	named := file(t, "token", "tOkEn1")
	g.rotated = func(next string) {
		if err := os.WriteFile(named, []byte(next), 0o600); err != nil {
			t.Error(err)
		}
	}
	r := start(t, "watch", "notes", "--server", g.URL, "--token-file", named)
	for range r.out {
	}
	if code := <-r.code; code != 1 || !strings.Contains(r.logs.String(), "the access was revoked") || strings.Contains(r.logs.String(), "tOkEn1") {
		t.Errorf("exit code %d: %s", code, r.logs)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if want := "[Bearer tOkEn1 Bearer tOkEn1.next Bearer tOkEn1.next.next]"; fmt.Sprint(g.got) != want {
		t.Errorf("sent %s, want %s", g.got, want)
	}
}

// The commands and the sources of another gateway are let in with a static token of the
// real gateway, and with no other one.
func TestTokensAtTheRealGateway(t *testing.T) {
	t.Setenv("WATCHTIDE_TOKEN", "")
	_, key, _ := command(t, "key", "new")
	_, made, _ := command(t, "token", "new", "ci")
	secret, line, _ := strings.Cut(made, "\n")
	core := serve(t, "--config", file(t, "gateway.yaml", fmt.Sprintf(`
auth: { key_files: [%q], tokens_file: %q }
roles: { robot: { when: 'principal.name == "ci"' } }
sources: { local: { type: store } }
watches: { notes: { source: local, allow: [ { role: robot, read: "true", write: "true" } ] } }
`, file(t, "a.key", key), file(t, "tokens", line))))
	named, wrong := file(t, "token", secret+"\n"), file(t, "wrong", "wrong")
	putAs(t, core, secret)

	code, stdout, stderr := command(t, "get", "notes", "--server", core.url(), "--token-file", named)
	if want := `{"key":"a","revision":"1","value":1}` + "\n"; code != 0 || stdout != want {
		t.Errorf("get: exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "watch", "notes", "--until", "end_of_snapshot", "--server", core.url(), "--token-file", named)
	if code != 0 || !strings.Contains(stdout, `"key":"a"`) {
		t.Errorf("watch: exit code %d: %s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"get", "notes"}, {"watch", "notes"}} {
		code, stdout, stderr := command(t, append(args, "--server", core.url(), "--token-file", wrong)...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, "401") || !strings.Contains(stderr, "want another token in the file "+wrong) {
			t.Errorf("%q with a wrong token: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}

	edge := serve(t, "--config", file(t, "edge.yaml", fmt.Sprintf(`
sources:
  sse: { type: gateway, url: %q, token_file: %q }
  grpc: { type: grpc, address: %q, token_file: %q }
watches: { notes: { source: sse }, same: { source: grpc, watch: notes } }
`, core.url(), named, core.grpc, named)))
	for _, watch := range []string{"notes", "same"} {
		code, stdout, stderr := command(t, "get", watch, "--server", edge.url())
		if want := `{"key":"a","revision":"1","value":1}` + "\n"; code != 0 || stdout != want {
			t.Errorf("%s through another gateway: exit code %d: %s%s", watch, code, stdout, stderr)
		}
	}
}

// putAs writes the resource a with a token.
func putAs(t *testing.T, s *served, token string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url()+"/v1/watches/notes/resources/a", strings.NewReader("1"))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode >= 300 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
}
