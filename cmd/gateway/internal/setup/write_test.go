package setup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/config"
	durable "github.com/watchtide/watchtide/stream/store"
)

// parse reads a configuration as serve does.
func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("x.yaml", []byte(text), config.Environment{Getenv: func(string) (string, bool) { return "variable", true }})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

func TestTextOfEverything(t *testing.T) {
	text := Text("x.yaml", []Source{
		{Type: "etcd", Where: "a, b", Fields: []string{`endpoints: ["a:1", "b:2"]`}, Notes: []string{"A note."}, Watches: []Watch{{Name: "true", Fields: `prefix: "/x/"`, Note: "keys: 3"}}},
		{Type: "nats", Where: "here", Fields: []string{`url: "nats://a:1"`}, Problem: errors.New("it is\naway"), Watches: []Watch{{Name: "1", Fields: `bucket: b`}}},
		store(),
	})
	const want = `
sources:
  # a, b
  etcd:
    type: etcd
    endpoints: ["a:1", "b:2"]
    # A note.
  # here
  # It did not say what it has when this was written: it is
  nats:
    type: nats
    url: "nats://a:1"
  # in the file watchtide-state/notes.db
  store:
    type: store
    path: watchtide-state/notes.db
    # Neither etcd, Consul, NATS, PostgreSQL nor Kubernetes was found. This one is written over
    # HTTP, and keeps what is written in a file in a folder beside this one.

# Clients follow watches, by these names.
watches:
  # keys: 3
  "true": { source: etcd, prefix: "/x/" }
  "1": { source: nats, bucket: b }
  # curl -X PUT http://127.0.0.1:8080/v1/watches/notes/resources/a -d '"b"'
  notes: { source: store }
`
	if !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s", text)
	}
	if c := parse(t, text); len(c.Sources) != 3 || len(c.Watches) != 3 {
		t.Errorf("%d sources, %d watches", len(c.Sources), len(c.Watches))
	}
}

// FuzzText: whatever an upstream has, the text is a configuration that says so.
func FuzzText(f *testing.F) {
	f.Add("/settings/", "127.0.0.1:2379")
	f.Add("${HOME}/$${x}\"\\\n# \u2028", "a\x00b\r\nc\u0085: d\ufeff")
	f.Fuzz(func(t *testing.T, prefix, where string) {
		if strings.ToValidUTF8(prefix, "") != prefix || prefix == "" {
			t.Skip("it would be a part of all keys")
		}
		c := parse(t, Text("x.yaml", []Source{{Type: "etcd", Where: where, Fields: []string{`endpoints: ["a:1"]`}, Problem: errors.New(where), Notes: []string{where},
			Watches: []Watch{{Name: watchName(prefix, "keys"), Fields: "prefix: " + quoted(prefix), Note: where}}}}))
		if got := c.Watches[0].Prefix; got != prefix {
			t.Errorf("got %q, want %q", got, prefix)
		}
	})
}

// initialise runs the command.
func initialise(t *testing.T, wrong error, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	c := Command(Tools{Stdout: &out, Stderr: &errs, Check: func(string, []byte) error { return wrong }})
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	err = c.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestAnExistingFileIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if stdout, _, err := initialise(t, nil, "--dir", dir); err != nil || !strings.HasPrefix(stdout, "files, "+dir) || !strings.HasSuffix(stdout, "serve --config watchtide.yaml\n") {
		t.Fatalf("%v: %s", err, stdout)
	}
	if err := os.WriteFile(defaultFile, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := initialise(t, nil, "--dir", dir); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("got %v", err)
	}
	if err := create(defaultFile, "x", false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(defaultFile); string(got) != "mine" {
		t.Errorf("it was changed to %q", got)
	}
	if _, _, err := initialise(t, nil, "--dir", dir, "--force"); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(defaultFile); !strings.HasPrefix(string(got), "# The configuration") {
		t.Errorf("got %s", got)
	}
}

func TestStdout(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	stdout, stderr, err := initialise(t, nil, "--dir", dir, "-")
	if err != nil || !strings.HasPrefix(stderr, "files, ") {
		t.Errorf("%v: %s", err, stderr)
	}
	parse(t, stdout)
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("it has written %v", entries)
	}
}

// A configuration that serve would refuse is not written.
func TestWhatIsWrongIsNotWritten(t *testing.T) {
	wrong := errors.New("wrong")
	file := filepath.Join(t.TempDir(), "x.yaml")
	for _, name := range []string{file, "-"} {
		if stdout, _, err := initialise(t, wrong, "--dir", ".", name); !errors.Is(err, wrong) || stdout != "" {
			t.Errorf("%s: %v, %s", name, err, stdout)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was written")
	}
}

// TestStoreLasts: the store of a new configuration keeps what is written, in a folder that only its owner can read.
func TestStoreLasts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.yaml")
	c, err := config.Parse(file, []byte(Text(file, []Source{store()})), config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := durable.Open(c.Sources[0].Store)
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
	folder := filepath.Join(filepath.Dir(file), "watchtide-state")
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 || opened.Path() != filepath.Join(folder, "notes.db") {
		t.Errorf("%s: %v, %v", opened.Path(), info, err)
	}
}
