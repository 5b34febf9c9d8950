//go:build servers

package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tokens configures the server's tokens, by the user that each belongs to.
func (c *cluster) tokens(lines ...string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.data(), "tokens"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	k := ownCluster(t).kind(true)
	k.tokens("admin admin", "reads reader", "idles nobody")
	k.mustPut("one", "a", `1`)
	as := func(user string) Config {
		c := k.config()
		c.Kubeconfig = k.kubeconfig(k.server.Addr(), user)
		return c
	}
	reader, owner := record(t, mustNew(t, as(`{token: reads}`)), nil), record(t, mustNew(t, k.config()), nil)
	reader.untilKeys("one/a")
	owner.untilKeys("one/a")
	if reader.Resume().Epoch == owner.Resume().Epoch {
		t.Error("a user without access to the definition names the order like a user with access: by what?")
	}
	if err := record(t, mustNew(t, as(`{token: idles}`)), nil).failure(); err == nil ||
		!strings.Contains(err.Error(), `User "nobody" cannot list resource`) || !strings.Contains(err.Error(), "want a role that may list and watch it") {
		t.Errorf("a user without permissions gets %v", err)
	}
	if err := record(t, mustNew(t, as(`{token: s3cret}`)), nil).failure(); err == nil ||
		!strings.Contains(err.Error(), "Unauthorized; want credentials that the server knows") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("an unknown user gets %v", err)
	}
}

// TestTokenIsRevoked revokes and replaces a token, in a file, and by a plugin.
func TestTokenIsRevoked(t *testing.T) {
	t.Parallel()
	k := ownCluster(t).kind(true)
	k.tokens("admin admin", "old reader")
	token := writeFile(t, "token", "old\n")
	plugin := writeFile(t, "plugin", "#!/bin/sh\nprintf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"%s\"}}' \"$(cat "+token+")\"\n")
	if err := os.Chmod(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	users := map[string]string{"a file": fmt.Sprintf(`{tokenFile: %q}`, token)}
	if _, err := exec.LookPath("/bin/sh"); err == nil {
		users["a plugin"] = fmt.Sprintf(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}`, plugin)
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			k := k.in(t)
			k.tokens("admin admin", "old reader")
			if err := os.WriteFile(token, []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := k.config()
			c.Kubeconfig = k.kubeconfig(k.server.Addr(), user)
			s := mustNew(t, c)
			r := record(t, s, nil)
			r.untilKeys()
			r.stop()
			k.tokens("admin admin", "new reader")
			if err := record(t, s, r).failure(); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
				t.Fatalf("with the old token: %v", err)
			}
			if err := os.WriteFile(token, []byte("new\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			// A plugin is called again once its credentials were rejected.
			k.await("the new token", func() bool {
				again := record(t, s, r)
				again.until("an answer", func() bool {
					select {
					case <-again.ended:
						return true
					default:
						return len(again.Commits()) > 0
					}
				})
				again.stop()
				return len(again.Commits()) > 0
			})
		})
	}
}

func TestUnknownNames(t *testing.T) {
	k := sharedKind(t)
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"a group", func(c *Config) { c.Group = "example.org" }, `the server has no group "example.org"; want the name of an API group`},
		{"a version", func(c *Config) { c.Version = "v7" }, `the server has no version "v7" of the group example.com; want v1`},
		{"a resource", func(c *Config) { c.Resource = "gadgets" }, `the server has no resource "gadgets" in example.com/v1; want the plural name of one: widgets`},
		{"the core group", func(c *Config) { c.Group = "" }, `the server has no version "v1" of the core group; want v1, or the name of a group`},
		{"a field", func(c *Config) { c.FieldSelector = "spec.x=1" }, `field label not supported: spec.x`},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := k.in(t).config()
			c.change(&config)
			err := record(t, mustNew(t, config), nil).failure()
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kubernetes https://127.0.0.1:") {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
