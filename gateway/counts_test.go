package gateway

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
)

// TestCountsAreOfWhatMayBeSeen: each principal counts what it may see, and a field that is hidden from it is
// absent.
func TestCountsAreOfWhatMayBeSeen(t *testing.T) {
	r := newGuarded(t, nil)
	for name, want := range map[string]string{
		"sam":   `[{"key":"is_lost","revision":"3","value":{"count":1}},{"key":"is_open","revision":"3","value":{"count":1}},{"key":"is_paid","revision":"3","value":{"count":1}}]`,
		"ann":   `[{"key":"is_open","revision":"3","value":{"count":1}}]`,
		"agent": `[{"key":"is_open","revision":"3","value":{"count":1}},{"key":"is_paid","revision":"3","value":{"count":1}}]`,
	} {
		if got := r.get("/v1/watches/orders/counts?by=status", r.as(name)...); !strings.Contains(got.text, want) {
			t.Errorf("%s: %s\nwant %s", name, got.text, want)
		}
	}
	if got, want := r.get("/v1/watches/orders/counts?by=owner&sum=eta", r.as("agent")...), `[{"key":"null","revision":"3","value":{"count":2,"sum":4,"min":1,"max":3}}]`; !strings.Contains(got.text, want) {
		t.Errorf("%s\nwant %s", got.text, want)
	}
}

// TestTooManyGroups: a list, and a stream that wants the state, name the field with the most values.
func TestTooManyGroups(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.Views.MaxGroups = 2 })
	for _, path := range []string{"/v1/watches/orders/counts?by=status,tenant", "/v1/watches/orders/counts/events?by=status&until=end_of_snapshot"} {
		got := r.get(path, r.as("sam")...)
		if got.want(t, 400, ""); !strings.Contains(got.text, `"parameter":"by"`) || !strings.Contains(got.text, "the field status has 3 values") {
			t.Errorf("%s: %s", path, got.text)
		}
	}
}

// TestCountsEndWithTheirRights: a stream of counts ends when its principal may see something else, and the
// next one begins with a reset.
func TestCountsEndWithTheirRights(t *testing.T) {
	var c Config
	r := newGuarded(t, func(of *Config) { c = *of })
	all := r.follow("ann", "/v1/watches/orders/counts/events?by=status", "identity")
	all.until("end_of_snapshot")
	policy, err := access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "all", When: "true"}},
		Watches: []access.WatchRules{{Name: "orders", Rules: []access.Rule{{Role: "all", Read: `value.tenant == "nobody"`}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := *c.Access
	a.Policy = policy
	c.Access = &a
	reloadWith(t, r.gateway, c)
	all.until(`"reason":"watch_replaced"`)
	again := r.get("/v1/watches/orders/counts/events?by=status&until=end_of_snapshot", append(r.as("ann"), "Last-Event-ID: "+lastID(t, strings.Join(all.seen, "\n")))...)
	if !strings.Contains(again.text, `"type":"reset"`) || strings.Contains(again.text, "upsert") {
		t.Errorf("after the change: %s", again.text)
	}
}
