//go:build servers

package consul

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

// TestTarget: keys are created, and never overwritten, and the error names the rule that is missing.
func TestTarget(t *testing.T) {
	eachConsul(t, "-dev", aclsOn, func(t *testing.T, c *consul) {
		config := Config{HTTPAddress: c.httpAddress(), Prefix: "app/", Resources: Resources{Collection: KV}, TokenFile: filepath.Join(t.TempDir(), "token")}
		reader, _ := c.tokenOf("reader", rule("key_prefix", "app/"))
		writer, _ := c.tokenOf("writer", writeRule("app/"))
		target, err := NewTarget(config)
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		writeToken(t, config.TokenFile, reader)
		if _, err := target.Create(t.Context(), "a", []byte("1")); err == nil || strings.Contains(err.Error(), reader) ||
			!strings.Contains(err.Error(), `want a token whose policy has key_prefix "app/" { policy = "write" }`) {
			t.Errorf("of a token that may read: error %v", err)
		}
		writeToken(t, config.TokenFile, writer)
		for _, key := range []string{"a", "a/b.c", "ключ", `quo"te\`, "a b", "a?b#c=d&e"} {
			if err := target.Check(key, []byte("1")); err != nil {
				t.Errorf("%q: error %v", key, err)
			}
			for _, want := range []bool{true, false} {
				if created, err := target.Create(t.Context(), key, []byte(`{"n":1}`)); created != want || err != nil {
					t.Errorf("%q: created %v, error %v", key, created, err)
				}
			}
			if got := c.call(http.MethodGet, keyPath(key)+"?raw", nil); string(got) != `{"n":1}` {
				t.Errorf("%q is %s", key, got)
			}
		}
		c.call(http.MethodPut, keyPath("a"), []byte(`{"n":2}`))
		if _, err := target.Create(t.Context(), "a", []byte(`{"n":1}`)); !errors.Is(err, adapter.ErrTaken) {
			t.Errorf("of another value: error %v", err)
		}
	})
}
