package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestInvalidConfig(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no version", func(c *Config) { c.Version = "" }, "no version or no resource"},
		{"no resource", func(c *Config) { c.Resource = "" }, "no version or no resource"},
		{"a kind", func(c *Config) { c.Resource = "Pod" }, `resource "Pod": want the plural name`},
		{"a subresource", func(c *Config) { c.Resource = "pods/log" }, `resource "pods/log": want the plural name`},
		{"a way out", func(c *Config) { c.Namespace = ".." }, `namespace "..": want the name of a namespace`},
		{"a group with its version", func(c *Config) { c.Group = "apps/v1" }, `group "apps/v1": want the name of an API group`},
		{"a version with a space", func(c *Config) { c.Version = "v 1" }, `version "v 1": want a version`},
		{"a context of no file", func(c *Config) { c.Context = "x" }, "context is one of a kubeconfig"},
		{"too impatient", func(c *Config) { c.StallAfter = time.Millisecond }, `stall after "1ms": want 2s or more`},
		{"labels", func(c *Config) { c.LabelSelector = "a in b" }, `label selector "a in b": want for instance`},
		{"fields", func(c *Config) { c.FieldSelector = "a" }, `field selector "a": want for instance`},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Config{Objects: Objects{Version: "v1", Resource: "pods"}}
			if _, err := New(config); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			c.change(&config)
			if _, err := New(config); err == nil || !strings.HasPrefix(err.Error(), "kubernetes: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

const twoContexts = `{apiVersion: v1, kind: Config, current-context: blue,
	clusters: [{name: blue, cluster: {server: "https://blue:1"}}, {name: green, cluster: {server: "https://green:2"}}],
	users: [{name: u, user: {}}],
	contexts: [{name: blue, context: {cluster: blue, user: u}}, {name: green, context: {cluster: green, user: u}}]}`

func TestContexts(t *testing.T) {
	path := writeFile(t, "kubeconfig", twoContexts)
	for context, want := range map[string]string{"": "https://blue:1", "green": "https://green:2"} {
		loaded, err := (&Config{Kubeconfig: path, Context: context}).load()
		if err != nil || loaded.Host != want {
			t.Errorf("context %q: %v, %v; want %s", context, loaded, err, want)
		}
	}
}

func TestInvalidKubeconfig(t *testing.T) {
	directory := t.TempDir()
	for _, c := range []struct {
		name, path, context, want string
	}{
		{"not there", filepath.Join(directory, "none"), "", "no such file or directory"},
		{"no YAML", writeFile(t, "k", "{"), "", "error loading config file"},
		{"empty", writeFile(t, "k", ""), "", "no configuration has been provided"},
		{"no such context", writeFile(t, "k", twoContexts), "red", `context "red" does not exist`},
		{"no such authority", writeFile(t, "k", strings.ReplaceAll(twoContexts, `"https://blue:1"`, `"https://blue:1", certificate-authority: /none/ca`)), "", "unable to read certificate-authority /none/ca"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustNew(t, Config{Objects: Objects{Version: "v1", Resource: "pods"}, Kubeconfig: c.path, Context: c.context})
			err := record(t, s, nil).failure()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("error %v, want %q and the file's name in it", err, c.want)
			}
		})
	}
}

func TestHomeDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for path, want := range map[string]string{
		"~/.kube/config": filepath.Join(home, ".kube", "config"), "/a/~/b": "/a/~/b", "~b": "~b", "c": "c",
	} {
		if got, err := withoutTilde(path); err != nil || got != want {
			t.Errorf("%s became %s, %v; want %s", path, got, err, want)
		}
	}
	t.Setenv("HOME", "")
	if _, err := withoutTilde("~/.kube/config"); err == nil || !strings.Contains(err.Error(), "~/.kube/config") {
		t.Errorf("without a home: error %v", err)
	}
}

func TestNoPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	err := record(t, mustNew(t, Config{Objects: Objects{Version: "v1", Resource: "pods"}}), nil).failure()
	if err == nil || !strings.Contains(err.Error(), "this process is not in a pod") || !strings.Contains(err.Error(), "want the name of a kubeconfig file") {
		t.Errorf("error %v, want it to name the missing file", err)
	}
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
