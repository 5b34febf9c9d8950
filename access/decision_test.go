package access

import (
	"slices"
	"testing"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

func resource(value string) *stream.Resource {
	return &stream.Resource{Key: "k", Revision: 5, Value: []byte(value)}
}

func TestWriteAndDelete(t *testing.T) {
	p := compile(t, example())
	mine, ofTenant, others := `{"owner":"ann","n":1}`, `{"owner":"x","tenant":"acme","status":"s"}`, `{"owner":"x","n":1}`
	for _, c := range []struct {
		name             string
		groups           []string
		tenant           string
		old, updated     string // empty: none
		write, deletion  int    // 0: allowed
		writeBy, deleted int    // the rules
	}{
		{"one's own", nil, "", mine, `{"owner":"ann"}`, 0, 0, 3, 3},
		{"one's own, given away", nil, "", mine, `{"owner":"eve"}`, 403, 0, 0, 3},
		{"a new one", nil, "", "", `{"owner":"ann"}`, 0, 404, 3, 0},
		{"a new one for another", nil, "", "", `{"owner":"eve"}`, 403, 404, 0, 0},
		{"a hidden one", nil, "", others, `{"owner":"ann"}`, 404, 404, 0, 0},
		{"a hidden one for another", nil, "", others, `{"owner":"eve"}`, 403, 404, 0, 0},
		{"one that is seen in part", nil, "acme", ofTenant, `{"owner":"ann"}`, 403, 403, 0, 0},
		{"any, for staff", []string{"staff"}, "", others, `{"owner":"eve"}`, 0, 0, 1, 3},
		{"a repeated member", nil, "", "", `{"owner":"eve","owner":"ann"}`, 403, 404, 0, 0},
		{"a repeated member elsewhere", nil, "", "", `{"owner":"ann","a":{"b":1,"b":2}}`, 403, 404, 0, 0},
	} {
		who := user("ann", c.groups...)
		if c.tenant != "" {
			who = tenantOf("ann", c.tenant)
		}
		var old *stream.Resource
		if c.old != "" {
			old = resource(c.old)
		}
		d := p.Write(who, "orders", "k", old, resource(c.updated))
		if d.Status != c.write || d.Allowed != (c.write == 0) || d.Rule != c.writeBy || (d.Reason == "") != d.Allowed {
			t.Errorf("writing %s: got %+v, want %d by rule %d", c.name, d, c.write, c.writeBy)
		}
		d = p.Delete(who, "orders", "k", old)
		if d.Status != c.deletion || d.Allowed != (c.deletion == 0) || d.Rule != c.deleted {
			t.Errorf("deleting %s: got %+v, want %d by rule %d", c.name, d, c.deletion, c.deleted)
		}
	}
}

// TestWhoMayNotWriteLearnsNothing: there is one answer, whether a resource exists, is hidden
// or is seen.
func TestWhoMayNotWriteLearnsNothing(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles: []Role{{Name: "anyone", When: "true"}, {Name: "staff", When: `"staff" in principal.groups`}},
		Watches: []WatchRules{
			{Name: "w", Rules: []Rule{{Role: "anyone", Read: "value.public", Write: `principal.name == "root"`}, {Role: "anyone", Read: "value.part", Fields: []string{"part"}}, {Role: "staff", Delete: "true"}}},
			{Name: "other", Rules: []Rule{{Role: "staff", Read: "true", Write: "true"}}},
		},
	})
	for _, old := range []*stream.Resource{nil, resource(`{"public":true}`), resource(`{"public":false}`), resource(`{"public":false,"part":true}`), resource(`1`)} {
		if d := p.Write(user("ann"), "w", "k", old, resource("1")); d.Status != 403 || d.Reason != reasonNoRule {
			t.Errorf("writing: got %+v", d)
		}
		if d := p.Delete(user("ann"), "w", "k", old); d.Status != 403 || d.Reason != reasonNoRule {
			t.Errorf("deleting: got %+v", d)
		}
		if d, e := p.Write(user("ann"), "other", "k", old, resource("1")), p.Delete(user("ann"), "other", "k", old); d.Status != 404 || e.Status != 404 {
			t.Errorf("in a hidden watch: got %+v, %+v", d, e)
		}
	}
	// A deleter who reads nothing cannot tell a hidden resource from none.
	if d, e := p.Delete(user("eve", "staff"), "w", "k", resource(`{"public":false}`)), p.Delete(user("eve", "staff"), "w", "k", nil); d.Status != 404 || e.Status != 404 {
		t.Errorf("got %+v, %+v", d, e)
	}
}

// TestHiddenValueDecidesNothing: a write to a hidden resource that would be refused if there
// were none has the same answer, whatever the hidden value is.
func TestHiddenValueDecidesNothing(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles:   []Role{{Name: "anyone", When: "true"}},
		Watches: []WatchRules{{Name: "w", Rules: []Rule{{Role: "anyone", Read: "value.public", Write: "new.level > old.level"}}}},
	})
	updated := resource(`{"public":true,"level":5}`)
	for _, old := range []*stream.Resource{nil, resource(`{"public":false,"level":1}`), resource(`{"public":false,"level":9}`), resource(`{"public":false}`)} {
		if d := p.Write(user("ann"), "w", "k", old, updated); d.Status != 403 {
			t.Errorf("from %+v: got %+v", old, d)
		}
	}
	if d := p.Write(user("ann"), "w", "k", resource(`{"public":true,"level":1}`), updated); !d.Allowed {
		t.Errorf("got %+v", d)
	}
}

// TestFailuresOfReadsAreCountedInWrites: a rule without a result hides the resource.
func TestFailuresOfReadsAreCountedInWrites(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles:   []Role{{Name: "anyone", When: "true"}},
		Watches: []WatchRules{{Name: "w", Rules: []Rule{{Role: "anyone", Read: "value.level > 3", Write: "true", Delete: "true"}}}},
	})
	old := resource(`{}`)
	write, deletion := p.Write(user("ann"), "w", "k", old, old), p.Delete(user("ann"), "w", "k", old)
	if write.Status != 404 || deletion.Status != 404 || p.Failures() != 2 {
		t.Errorf("got %+v and %+v, with %d failures", write, deletion, p.Failures())
	}
}

// TestRulesOfWritesSeeBothValues, null without one.
func TestRulesOfWritesSeeBothValues(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles: []Role{{Name: "anyone", When: "true"}},
		Watches: []WatchRules{{Name: "w", LabelsAt: "meta", Rules: []Rule{
			{Role: "anyone", Read: `labels.a == "b"`, Write: `old == null ? new.n == 0 : new.n > old.n && key.startsWith("k")`, Delete: `old.n > 3`},
		}}},
	})
	at := func(n string) *stream.Resource { return resource(`{"meta":{"a":"b"},"n":` + n + `}`) }
	for _, c := range []struct {
		old, updated *stream.Resource
		want         bool
	}{{nil, at("0"), true}, {nil, at("1"), false}, {at("1"), at("2"), true}, {at("2"), at("2"), false}, {at(`"x"`), at("2"), false}} {
		if d := p.Write(user("ann"), "w", "k", c.old, c.updated); d.Allowed != c.want {
			t.Errorf("from %+v to %+v: got %+v", c.old, c.updated, d)
		}
	}
	if p.Failures() != 1 {
		t.Errorf("%d expressions have failed, want that of \"x\"", p.Failures())
	}
	if d := p.Delete(user("ann"), "w", "k", at("4")); !d.Allowed || d.Rule != 1 || d.Role != "anyone" {
		t.Errorf("got %+v", d)
	}
	if d := p.Delete(user("ann"), "w", "k", at("3")); d.Status != 403 {
		t.Errorf("got %+v", d)
	}
	binary := &stream.Resource{Key: "k", Revision: 1, Value: []byte(`"AAEC"`), Encoding: stream.Base64}
	if d := p.Write(user("ann"), "w", "k", nil, binary); d.Allowed {
		t.Errorf("got %+v", d)
	}
}

func TestExplain(t *testing.T) {
	p := compile(t, example())
	e := p.Explain(tenantOf("bob", "acme"), "orders", "k", resource(`{"tenant":"acme","owner":"x","status":"s"}`))
	if !e.Visible || e.Visibility != view.Part || e.Write.Status != 403 || e.Delete.Status != 403 {
		t.Errorf("%+v", e)
	}
	held := []bool{}
	for _, r := range e.Roles {
		held = append(held, r.Held)
	}
	if !slices.Equal(held, []bool{true, false, true}) || e.Roles[1].Why != "when is false" || e.Roles[2].With["tenant"] != "acme" {
		t.Errorf("%+v", e.Roles)
	}
	if r := e.Rules[0]; r.Held || r.Read.Why != "the role is not held" || r.Write || r.Number != 1 || r.Role != "staff" {
		t.Errorf("%+v", r)
	}
	if r := e.Rules[1]; !r.Held || !r.Read.Holds || r.Read.Filter != `value.tenant == "acme"` || !slices.Equal(r.Read.Fields, []string{"status", "eta"}) {
		t.Errorf("%+v", r)
	}
	if r := e.Rules[2]; r.Read.Holds || !r.Write || !r.Delete {
		t.Errorf("%+v", r)
	}
	if e := p.Explain(user("ann"), "orders", "", nil); !e.Visible || e.Write.Reason != "" || e.Rules[2].Read.Filter != `value.owner == "ann"` {
		t.Errorf("%+v", e)
	}
	if e := p.Explain(user("ann", "staff"), "closed", "", nil); e.Visible || len(e.Rules) != 0 || len(e.Roles) != 3 {
		t.Errorf("%+v", e)
	}
}
