package commands

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// heard is a server that keeps what it was sent, by its name.
func heard(t *testing.T, name string, into *[]string) string {
	t.Helper()
	var mu sync.Mutex
	return ask(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*into = append(*into, strings.TrimSpace(name+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Key")))
		fmt.Fprint(w, `{"watches":[]}`)
	}).URL
}

// Which gateway is asked, and with which credentials: flags go before the environment, and that
// before the current context. A context's credentials go to its own server only.
func TestWhichGatewayIsAsked(t *testing.T) {
	var got []string
	flag, variable, prod, other := heard(t, "flag", &got), heard(t, "variable", &got), heard(t, "prod", &got), heard(t, "other", &got)
	t.Setenv("WATCHTIDE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	t.Setenv("WATCHTIDE_TOKEN", "env")
	for _, args := range [][]string{
		{"context", "set", "prod", "--server", prod, "--token-file", file(t, "token", "prod-token"), "--header", "X-Key: prod-key"},
		{"context", "set", "other", "--server", other},
	} {
		if code, _, stderr := command(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, stderr)
		}
	}
	mine := file(t, "mine", "mine")
	for _, c := range []struct {
		server string // WATCHTIDE_SERVER
		args   []string
		want   string
	}{
		{"", nil, "prod Bearer prod-token prod-key"},
		{"", []string{"--context", "other"}, "other Bearer env"},
		{"", []string{"--server", flag}, "flag Bearer env"},
		{"", []string{"--token-file", mine, "--header", "x-key: mine"}, "prod Bearer mine mine"},
		{variable, nil, "variable Bearer env"},
		{variable, []string{"--server", flag}, "flag Bearer env"},
		{variable, []string{"--context", "prod"}, "prod Bearer prod-token prod-key"},
	} {
		t.Setenv("WATCHTIDE_SERVER", c.server)
		got = nil
		code, _, stderr := command(t, append([]string{"list"}, c.args...)...)
		if code != 0 || fmt.Sprint(got) != "["+c.want+"]" {
			t.Errorf("%q, %q: exit code %d: %s\nsent %q, want %q", c.server, c.args, code, stderr, got, c.want)
		}
	}
	for want, args := range map[string][]string{
		"want --server or --context, not both":            {"--server", flag, "--context", "prod"},
		`there is no context "x": want one of other, pro`: {"--context", "x"},
		"want a token file":                               {"--header", "Authorization: Bearer sEcReT"},
		"certificates are for TLS":                        {"--ca-file", mine},
		"want --cert-file and --key-file together":        {"--server", "https://127.0.0.1", "--cert-file", mine},
		"has no certificate: want PEM":                    {"--server", "https://127.0.0.1", "--ca-file", mine},
		"the client certificate: ":                        {"--server", "https://127.0.0.1", "--cert-file", mine, "--key-file", mine},
		"the CA file: ":                                   {"--server", "https://127.0.0.1", "--ca-file", mine + "x"},
	} {
		code, _, stderr := command(t, append([]string{"list"}, args...)...)
		if code != 2 || !strings.Contains(stderr, want) || strings.Contains(stderr, "sEcReT") {
			t.Errorf("%q: exit code %d: %s, want %s", args, code, stderr, want)
		}
	}
}

// A mistake in the file of contexts is an error only of a command that needs it.
func TestMistakeInTheFileOfContexts(t *testing.T) {
	t.Setenv("WATCHTIDE_CONTEXTS", file(t, "contexts.yaml", "current: gone\n"))
	g := serve(t)
	if code, _, stderr := command(t, "list", "--server", g.url()); code != 0 {
		t.Errorf("with --server: exit code %d: %s", code, stderr)
	}
	if code, _, stderr := command(t, "list"); code != 2 || !strings.Contains(stderr, `the current context: there is no context "gone"`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Every command that talks to a gateway says who it is, unless it is told to say something else.
func TestUserAgent(t *testing.T) {
	var mu sync.Mutex
	var got []string
	s := ask(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Header.Get("User-Agent"))
		mu.Unlock()
		answerAnything(w, r)
	})
	for _, args := range [][]string{{"list"}, {"get", "notes"}, {"get", "notes", "k"}, {"put", "notes", "k", "1"}, {"delete", "notes", "k"}, {"watch", "notes"}} {
		got = nil
		code, _, stderr := command(t, append(args, "--server", s.URL)...)
		if want := "[watchtide/" + buildVersion() + "]"; code != 0 || fmt.Sprint(got) != want {
			t.Errorf("%q: exit code %d: %s\ngot %q, want %s", args, code, stderr, got, want)
		}
	}
	got = nil
	if command(t, "list", "--header", "User-Agent: me/1", "--server", s.URL); fmt.Sprint(got) != "[me/1]" {
		t.Errorf("got %q", got)
	}
}

// A gateway with a certificate of its own authority, that lets in whoever has a client
// certificate.
func TestCertificates(t *testing.T) {
	cert, key, _ := certificate(t)
	g := serve(t, "--config", file(t, "gateway.yaml", fmt.Sprintf(`
http: { tls: { cert_file: %q, key_file: %q, client_ca_file: %q } }
auth: { certificates: { subject: dns } }
roles: { known: { when: 'principal.name == "gateway.test"' } }
sources: { local: { type: store } }
watches: { notes: { source: local, allow: [ { role: known, read: "true", write: "true" } ] } }
`, cert, key, cert)))
	server := "https://" + g.http
	own := []string{"--server", server, "--ca-file", cert, "--cert-file", cert, "--key-file", key}
	if code, stdout, stderr := command(t, append([]string{"put", "notes", "a", "1"}, own...)...); code != 0 || stdout != "1\n" {
		t.Errorf("with a client certificate: exit code %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := command(t, append([]string{"watch", "notes", "--until", "end_of_snapshot"}, own...)...); code != 0 || !strings.Contains(stdout, `"key":"a"`) {
		t.Errorf("watch: exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := command(t, "get", "notes", "--server", server, "--ca-file", cert); code != 1 || !strings.Contains(stderr, "40") {
		t.Errorf("without: exit code %d: %s", code, stderr)
	}
	if code, _, stderr := command(t, "get", "notes", "--server", server); code != 1 || !strings.Contains(stderr, "certificate") {
		t.Errorf("unknown authority: exit code %d: %s", code, stderr)
	}
	t.Setenv("WATCHTIDE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	command(t, append([]string{"context", "set", "tls"}, own...)...)
	if code, stdout, stderr := command(t, "get", "notes"); code != 0 || !strings.Contains(stdout, `"key":"a"`) {
		t.Errorf("with a context: exit code %d: %s%s", code, stdout, stderr)
	}
	if text, _ := os.ReadFile(os.Getenv("WATCHTIDE_CONTEXTS")); strings.Contains(string(text), "PRIVATE KEY") {
		t.Error("the file of contexts has the key")
	}
}
