//go:build servers

package consul

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestEntries: who holds a key as a lock is seen, and each change of it.
func TestEntries(t *testing.T) {
	eachConsul(t, "-dev", "", func(t *testing.T, c *consul) {
		config := keysConfig(c.httpAddress())
		config.Entries = true
		c.call(http.MethodPut, "/v1/kv/app/leader?flags=42", []byte(`{"host":"n1"}`))
		w := follow(t, open(t, config))
		want := func(pattern string) {
			t.Helper()
			w.eventually(pattern, func() error {
				r, _ := w.Snapshot().Get("leader")
				if !regexp.MustCompile("^" + pattern + "$").Match(r.Value) {
					return fmt.Errorf("it is %s", r.Value)
				}
				return nil
			})
		}
		want(`{"value":{"host":"n1"},"flags":42,"session":"","lock_index":0}`)
		session := c.callJSON("PUT", "/v1/session/create", map[string]any{"TTL": "60s"}, "ID")
		if got := strings.TrimSpace(string(c.call(http.MethodPut, "/v1/kv/app/leader?flags=42&acquire="+session, []byte(`{"host":"n2"}`)))); got != "true" {
			t.Fatalf("the lock is not acquired: %s", got)
		}
		want(`{"value":{"host":"n2"},"flags":42,"session":"` + session + `","lock_index":1}`)
		c.call(http.MethodPut, "/v1/session/destroy/"+session, nil)
		want(`{"value":{"host":"n2"},"flags":42,"session":"","lock_index":1}`)
	})
}
