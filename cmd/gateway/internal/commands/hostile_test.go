package commands

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
)

// hostile has characters that terminals interpret: ESC, BEL, DEL, C1 as a
// character, marks that change the direction, and an invisible tag.
const hostile = "\x1b]0;owned\x07\x7f\u009b31m\u202ek\u2066\U000e0041"

// noEscapes fails on anything that a terminal interprets, except for the
// sequences with which the program draws.
func noEscapes(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			t.Errorf("%s: %U in %q", what, r, text)
			return
		}
	}
}

// TestHostileResources: they are escaped on a terminal, and go through a pipe
// byte for byte.
func TestHostileResources(t *testing.T) {
	g := serve(t)
	const inJSON = "\x7f\u009b31m\u202ek\u2066\U000e0041" // JSON itself escapes the others
	g.put("%1B%5D0;x%07%C2%9B31m%E2%80%AE", `{"n`+inJSON+`":"\u001b[31m`+inJSON+`"}`)
	key := "\x1b]0;x\x07\u009b31m\u202e"
	for _, args := range [][]string{{"get", "notes"}, {"get", "notes", key}} {
		var out, errs bytes.Buffer
		p := process{stdout: &out, stderr: &errs, exit: func(int) {}, size: func() (int, int, error) { return 200, 24, nil }}
		if code := run(t.Context(), p, append(args, "--server", g.url())); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		noEscapes(t, strings.Join(args[:2], " "), out.String())
		if !strings.Contains(out.String(), "31m") {
			t.Errorf("nothing is shown: %q", out.String())
		}
	}
	_, stdout, _ := command(t, "get", "notes", key, "--server", g.url())
	if !strings.Contains(stdout, inJSON) {
		t.Errorf("through a pipe: %q", stdout)
	}
}

// TestHostileErrors: a server's error messages are escaped.
func TestHostileErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": 404, "title": "Not " + hostile, "detail": hostile})
	}))
	defer server.Close()
	code, _, stderr := command(t, "get", "notes", "--server", server.URL)
	if code != 1 || !strings.Contains(stderr, "owned") {
		t.Errorf("exit code %d: %q", code, stderr)
	}
	noEscapes(t, "stderr", stderr)
}

// TestHostileNames: what a terminal would interpret in a gateway's names is not offered to a shell.
func TestHostileNames(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"watches": []map[string]string{
			{"name": "a" + hostile, "source": "s", "state": "in_sync"}, {"name": "b\nc", "source": "s", "state": "in_sync"},
			{"name": "notes", "source": hostile, "state": "in_sync"}, {"name": "tasks", "source": "s", "state": "x\n" + hostile},
		}})
	}))
	defer server.Close()
	for _, args := range [][]string{{"get", "--server", server.URL, ""}, {"watch", "--server", server.URL, ""}, {"doctor", server.URL, "--watch", ""}} {
		got := complete(t, args...)
		noEscapes(t, args[0], got)
		if got != "notes tasks" {
			t.Errorf("%s: offers %q", args[0], got)
		}
	}
}
