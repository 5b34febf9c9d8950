package commands

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// complete returns what a shell is offered for the last argument.
func complete(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, _ := command(t, append([]string{"__complete"}, args...)...)
	offered, directive, found := strings.Cut(stdout, ":")
	if code != 0 || !found || directive == "" {
		t.Fatalf("exit code %d: %s", code, stdout)
	}
	return strings.ReplaceAll(strings.TrimSpace(offered), "\n", " ")
}

// TestCompletion: names of watches and keys come from the gateway.
func TestCompletion(t *testing.T) {
	g := serve(t)
	for _, key := range []string{"eu/a", "eu/b", "us/c", "%1B%5B31m", "eu/line%0Abreak", "%FF"} {
		g.put(key, `1`)
	}
	server := []string{"--server", g.url()}
	for _, verb := range []string{"get", "put", "delete"} {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{""}, "notes"},
			{[]string{"notes", ""}, "eu/a eu/b us/c"},
			{[]string{"notes", "eu/"}, "eu/a eu/b"},
			{[]string{"nowhere", ""}, ""},
			{[]string{"notes", "eu/a", ""}, ""},
		} {
			got := complete(t, append(append([]string{verb}, server...), c.args...)...)
			if got, _, _ := strings.Cut(got, "\t"); got != c.want {
				t.Errorf("%s %q: got %q, want %q", verb, c.args, got, c.want)
			}
		}
	}
	if got := complete(t, append(append([]string{"watch"}, server...), "n")...); !strings.HasPrefix(got, "notes\tdefault") && !strings.HasPrefix(got, "notes\t") {
		t.Errorf("watch: got %q", got)
	}
	for _, args := range [][]string{{"doctor", "--server", g.url(), "--watch", "n"}, {"doctor", g.url(), "--watch", "n"}} {
		if got := complete(t, args...); !strings.HasPrefix(got, "notes\t") {
			t.Errorf("%q: got %q", args, got)
		}
	}
	if got := complete(t, "doctor", "--server", g.url(), g.url(), "--watch", "n"); got != "" {
		t.Errorf("two gateways: got %q", got)
	}
	if got := complete(t, "list", "-o", ""); got != "table json ndjson yaml jsonpath=" {
		t.Errorf("forms: got %q", got)
	}
}

// A gateway that refuses, that does not answer, or that is not there says nothing to a shell.
func TestCompletionIsSilent(t *testing.T) {
	refusing := ask(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	hanging := ask(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for name, server := range map[string]string{"refusing": refusing.URL, "hanging": hanging.URL, "gone": "http://127.0.0.1:1", "no URL": "localhost"} {
		began := time.Now()
		code, stdout, stderr := command(t, "__complete", "get", "--server", server, "notes", "")
		if code != 0 || stdout != ":4\n" || strings.Contains(stderr, "no\n") || time.Since(began) > patience {
			t.Errorf("%s: exit code %d, %q, %q", name, code, stdout, stderr)
		}
	}
}

// The scripts of the shells are those of this program.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, stdout, stderr := command(t, "completion", shell)
		if code != 0 || !strings.Contains(stdout, "__complete") || !strings.Contains(stdout, "watchtide") {
			t.Errorf("%s: exit code %d: %s", shell, code, fmt.Sprint(len(stdout), stderr))
		}
	}
}
