//go:build servers

package consul

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// policyFor lets a token list all artists, and read those whose names begin with a
// prefix.
func policyFor(prefix string) string {
	return `key "resource/demo.v2.Artist" { policy = "list" } key_prefix "resource/demo.v2.Artist/` + prefix + `" { policy = "read" }`
}

// policy creates a policy, or replaces its rules, and returns its id.
func (c *consul) policy(id, name, rules string) string {
	c.t.Helper()
	path := "/v1/acl/policy"
	if id != "" {
		path += "/" + id
	}
	return c.callJSON(http.MethodPut, path, map[string]any{"Name": name, "Rules": rules}, "ID")
}

// newToken creates a token and returns it with the id by which it is deleted.
func (c *consul) newToken(policy string) (secret, accessor string) {
	c.t.Helper()
	body := map[string]any{"Policies": []any{map[string]any{"Name": policy}}}
	secret = c.callJSON(http.MethodPut, "/v1/acl/token", body, "SecretID")
	c.eventually("token", func() error { // the token has to reach the server's cache
		a := artists{client: c.client, typ: c.typ, token: secret}
		_, err := a.list(c.t.Context(), "")
		return err
	})
	return secret, c.callJSON(http.MethodGet, "/v1/acl/token/self?token="+secret, nil, "AccessorID")
}

// TestTokens: a deleted token is noticed, a replaced one is used, and subscribers
// keep their resources.
func TestTokens(t *testing.T) {
	eachConsul(t, "-server", aclsOn, func(t *testing.T, c *consul) {
		c.policy("", "all", policyFor(""))
		c.mustPut(t, "a", `"one"`)
		first, accessor := c.newToken("all")
		second, accessor2 := c.newToken("all")
		file := filepath.Join(t.TempDir(), "token")
		writeToken(t, file, first)
		w := follow(t, texts{newSource(t, Config{Address: c.Addr(), TokenFile: file, ProbeInterval: MinProbe})})
		w.holds("a", `"one"`)

		c.call(http.MethodDelete, "/v1/acl/token/"+accessor, nil)
		w.is(stream.Stale)
		reason := w.Status().Full()
		if !strings.Contains(reason, "want a token that exists in "+file) || strings.Contains(reason, first) {
			t.Errorf("the reason is %q", reason)
		}
		c.mustPut(t, "a", `"two"`)
		writeToken(t, file, second)
		w.holds("a", `"two"`)
		w.is(stream.InSync)

		third, _ := c.newToken("all")
		before := w.Stats()
		writeToken(t, file, third)
		w.eventually("use of the third token", func() error {
			if sum(w.Stats().Resyncs) == sum(before.Resyncs) {
				return errors.New("the watch continues with the second")
			}
			return nil
		})
		c.call(http.MethodDelete, "/v1/acl/token/"+accessor2, nil)
		c.mustPut(t, "a", `"three"`)
		w.holds("a", `"three"`)
		if n := sum(w.Stats().Reconnects) - sum(before.Reconnects); n != 0 {
			t.Errorf("%d reconnects: a new token is no outage", n)
		}
		if gone := w.deleted(); len(gone) > 0 || w.count(stream.Reset) != 1 {
			t.Errorf("%q were deleted, %d resets", gone, w.count(stream.Reset))
		}
	})
}

func sum(counters map[string]uint64) (n uint64) {
	for _, c := range counters {
		n += c
	}
	return n
}

// TestPolicies: a resource hidden by a policy is reported as deleted, although
// Consul sends nothing; showing hidden resources makes it another collection.
func TestPolicies(t *testing.T) {
	eachConsul(t, "-server", aclsOn, func(t *testing.T, c *consul) {
		id := c.policy("", "some", policyFor(""))
		c.mustPut(t, "open-a", `"one"`)
		c.mustPut(t, "secret-a", `"one"`)
		c.mustPut(t, "open-b", `"one"`)
		token, _ := c.newToken("some")
		file := filepath.Join(t.TempDir(), "token")
		writeToken(t, file, token)
		w := follow(t, texts{newSource(t, Config{Address: c.Addr(), TokenFile: file, ListInterval: MinRelist})})
		w.holds("secret-a", `"one"`)
		epoch := w.Snapshot().Epoch()

		c.policy(id, "some", policyFor("open"))
		w.holds("secret-a", "")
		c.mustPut(t, "secret-a", `"two"`)
		c.mustPut(t, "open-a", `"two"`)
		w.holds("open-a", `"two"`)
		w.holds("open-b", `"one"`)
		if gone := w.deleted(); len(gone) != 1 || w.Snapshot().Epoch() != epoch {
			t.Errorf("%q were deleted, the epoch became %s: want the hidden one deleted in epoch %s", gone, w.Snapshot().Epoch(), epoch)
		}

		c.policy(id, "some", policyFor(""))
		w.holds("secret-a", `"two"`)
		if w.Snapshot().Epoch() == epoch {
			t.Error("the epoch stayed, though older versions came in")
		}

		c.policy(id, "some", `key_prefix "resource/" { policy = "deny" }`)
		w.is(stream.Stale)
		if reason := w.Status().Full(); !strings.Contains(reason, "want a token whose policy allows") {
			t.Errorf("the reason is %q", reason)
		}
	})
}

// TestWithoutToken: the first mistake that a newcomer makes.
func TestWithoutToken(t *testing.T) {
	eachConsul(t, "-server", aclsOn, func(t *testing.T, c *consul) {
		err := newSource(t, Config{Address: c.Addr()}).Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil))
		if err == nil || !strings.Contains(err.Error(), "want token_file") {
			t.Errorf("got %v", err)
		}
	})
}
