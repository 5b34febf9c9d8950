package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
)

// TestWatchesAreListedAsTheyMayBeUsed checks that the list of watches says who may write what,
// and shows a watch that a template has made only to those who may read all of it: its name
// tells what somebody else looks at.
func TestWatchesAreListedAsTheyMayBeUsed(t *testing.T) {
	mine := `value.owner == principal.name`
	compiled, err := access.CompilePolicy(access.PolicyConfig{
		Roles: []access.Role{
			{Name: "staff", When: `"staff" in principal.groups`}, {Name: "acme", When: `"acme" in principal.groups`}, {Name: "anyone", When: "true"},
		},
		Watches: []access.WatchRules{
			{Name: "orders", Rules: []access.Rule{{Role: "staff", Read: "true", Write: "true"}, {Role: "acme", Read: mine, Delete: "old.done"}, {Role: "anyone", Read: mine}}},
			{Name: "vault-{region}", Rules: []access.Rule{{Role: "staff", Read: "true"}, {Role: "acme", Read: "true", Fields: []string{"n"}}, {Role: "anyone", Read: mine, Write: "true"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newGuarded(t, func(c *Config) { c.Access.Policy = compiled })
	r.get("/v1/watches/vault-eu", r.as("sam")...).want(t, 200, "")
	for name, c := range map[string]struct{ writes, lists bool }{
		"sam": {writes: true, lists: true}, "agent": {writes: true}, "ann": {},
	} {
		all := r.get("/v1/watches", r.as(name)...).text
		for _, text := range []string{all, r.get("/v1/watches/orders", r.as(name)...).text} {
			if want := fmt.Sprintf(`"writable":%t`, c.writes); !strings.Contains(between(text, `"name":"orders"`, "}"), want) {
				t.Errorf("%s: %s, want %s", name, text, want)
			}
		}
		if lists := strings.Contains(all, "vault-eu"); lists != c.lists {
			t.Errorf("%s: %s, want vault-eu in it: %t", name, all, c.lists)
		}
		one := r.get("/v1/watches/vault-eu", r.as(name)...)
		if one.StatusCode != 200 || !strings.Contains(one.text, `"writable":true`) {
			t.Errorf("%s: a watch asked for by its name: %s %s", name, one.Status, one.text)
		}
	}
}
