package connect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// inFile makes a file of contexts that does not exist yet the one of the test.
func inFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "new", "contexts.yaml")
	t.Setenv(ContextsVariable, name)
	return name
}

// run runs a command of the group.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	usage := func(format string, args ...any) error { return fmt.Errorf("usage: "+format, args...) }
	c := ContextsCommand(&out, terminal.Terminal{}, usage)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err := c.Execute()
	return out.String(), err
}

// must runs a command that succeeds.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out
}

func TestContextsAreKept(t *testing.T) {
	name := inFile(t)
	if got := must(t, "list", "-o", "json"); got != "{\n  \"contexts\": []\n}\n" {
		t.Errorf("before the first: %s", got)
	}
	must(t, "set", "prod", "--server", "https://user:pa55@a.example", "--token-file", "token", "--header", "x-key: sEcReT")
	must(t, "set", "test", "--server", "http://127.0.0.1:8080")
	if got, want := must(t, "list"), "   NAME  SERVER\n*  prod  https://user:xxxxx@a.example\n   test  http://127.0.0.1:8080\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	must(t, "use", "test")
	folder, _ := os.Getwd()
	want := "name: prod\ncurrent: false\nserver: \"https://user:xxxxx@a.example\"\ntoken_file: " + filepath.Join(folder, "token") + "\nheaders:\n  - X-Key\n"
	if got := must(t, "show", "prod"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := must(t, "show", "-o", "jsonpath=.name"); got != "test\n" {
		t.Errorf("the current one is %s", got)
	}
	must(t, "delete", "test")
	if _, err := run(t, "show"); err == nil || !strings.Contains(err.Error(), "no context is the current one") {
		t.Errorf("got %v", err)
	}
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	if hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".*")); len(left) != 1 || len(hidden) > 0 {
		t.Errorf("left over: %q %q", left, hidden)
	}
}

// What a flag names is replaced, what is empty is removed, and the rest stays.
func TestSetChangesWhatItNames(t *testing.T) {
	inFile(t)
	must(t, "set", "a", "--server", "https://a.example", "--token-file", "/t", "--ca-file", "/ca", "--header", "X-A: 1", "--header", "X-B: 2")
	must(t, "set", "a", "--token-file", "", "--cert-file", "/c", "--key-file", "/k", "--header", "X-A:", "--header", "X-C: a: b")
	f, err := LoadContexts()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", f.Contexts["a"])
	if want := "{Server:https://a.example TokenFile: CAFile:/ca CertFile:/c KeyFile:/k Headers:map[X-B:2 X-C:a: b]}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMistakesOfContexts(t *testing.T) {
	name := inFile(t)
	must(t, "set", "a", "--server", "http://a")
	for want, args := range map[string][]string{
		"usage: want a command: context list":              nil,
		"usage: want --server URL":                         {"set", "b"},
		"usage: server \"localhost\": want a":              {"set", "b", "--server", "localhost"},
		"usage: context \"a b\": want a name":              {"set", "a b", "--server", "http://a"},
		"usage: want cert_file and key_file":               {"set", "a", "--cert-file", "c"},
		"want a token file":                                {"set", "a", "--header", "authorization: Bearer sEcReT"},
		"each request sets it itself":                      {"set", "a", "--header", "if-match: sEcReT"},
		`want "Name: value"`:                               {"set", "a", "--header", "sEcReT"},
		"a name has no such characters":                    {"set", "a", "--header", "x y: sEcReT"},
		"the value has characters":                         {"set", "a", "--header", "x: sEcReT\x00"},
		"is given twice":                                   {"set", "a", "--header", "x: sEcReT", "--header", "X: b"},
		`there is no context "c": want one of a`:           {"use", "c"},
		`there is no context "d": want one of a`:           {"show", "d"},
		`there is no context "e": want one of a`:           {"delete", "e"},
		`usage: --output "table": want yaml, json or json`: {"show", "-o", "table"},
	} {
		if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sEcReT") {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
	if err := os.WriteFile(name, []byte("contexts:\n  a: { sever: http://a }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "list"); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "sever") {
		t.Errorf("a misspelt key: got %v", err)
	}
	if err := os.WriteFile(name, []byte("contexts:\n  a: { server: http://a, headers: { Authorization: sEcReT } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "show", "a"); err == nil || !strings.Contains(err.Error(), "context a: header Authorization") {
		t.Errorf("a header by hand: got %v", err)
	}
}

// A link, as in a folder of dot files, stays one.
func TestLinkToTheFileStays(t *testing.T) {
	name := inFile(t)
	must(t, "set", "a", "--server", "http://a")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(name, link); err != nil {
		t.Skip(err)
	}
	t.Setenv(ContextsVariable, link)
	must(t, "set", "b", "--server", "http://b")
	t.Setenv(ContextsVariable, name)
	if f, err := LoadContexts(); err != nil || !slices.Equal(f.Names(), []string{"a", "b"}) {
		t.Errorf("got %v, %v", f, err)
	}
}

// Without a home there are no contexts, and a command that needs none works.
// TestEndlessFile: the file is read no further than a file of contexts can be long.
func TestEndlessFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "contexts.yaml")
	t.Setenv(ContextsVariable, name)
	if err := os.WriteFile(name, make([]byte, maxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "list"); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("error %v, want one that names the limit", err)
	}
}

func TestNoHome(t *testing.T) {
	for _, name := range []string{ContextsVariable, "HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, "")
	}
	if f, err := LoadContexts(); err != nil || len(f.Contexts) != 0 {
		t.Errorf("got %v, %v", f, err)
	}
	if _, err := run(t, "set", "a", "--server", "http://a"); err == nil || !strings.Contains(err.Error(), ContextsVariable) {
		t.Errorf("got %v", err)
	}
}

func TestNamesAreCompleted(t *testing.T) {
	inFile(t)
	must(t, "set", "b", "--server", "http://b")
	must(t, "set", "a", "--server", "http://a")
	got, directive := completeOne(nil, nil, "")
	if want := "[a\thttp://a b\thttp://b]"; fmt.Sprint(got) != want || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("got %q", got)
	}
	if got, _ := completeOne(nil, []string{"a"}, ""); len(got) > 0 {
		t.Errorf("a second name: got %q", got)
	}
}
