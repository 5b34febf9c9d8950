package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// example has the roles and the watch of the documentation.
func example() PolicyConfig {
	return PolicyConfig{
		Roles: []Role{
			{Name: "anyone", When: "true"},
			{Name: "staff", When: `"staff" in principal.groups`},
			{Name: "tenant", When: "has(principal.claims.tenant)", With: []RoleValue{{"tenant", "principal.claims.tenant"}}},
		},
		Watches: []WatchRules{
			{Name: "orders", Rules: []Rule{
				{Role: "staff", Read: "true", Write: "true"},
				{Role: "tenant", Read: "value.tenant == role.tenant", Fields: []string{"status", "eta"}},
				{Role: "anyone", Read: "value.owner == principal.name", Write: "new.owner == principal.name", Delete: "true"},
			}},
			{Name: "closed"},
			{Name: "log", Rules: []Rule{{Role: "staff", Write: `key.startsWith("a/")`}}},
		},
	}
}

func compile(t testing.TB, c PolicyConfig) *Policy {
	t.Helper()
	p, err := CompilePolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func user(name string, groups ...string) *Principal {
	return &Principal{Mechanism: "jwt", Issuer: "https://idp.example.com", Name: name, Groups: groups}
}

func tenantOf(name, tenant string) *Principal {
	p := user(name)
	p.Claims = map[string]any{"tenant": tenant}
	return p
}

// texts returns grants as texts.
func texts(grants []view.Grant) (out []string) {
	for _, g := range grants {
		out = append(out, strings.TrimSpace(g.Filter+" "+strings.Join(g.Fields, ",")))
	}
	return out
}

func TestGrants(t *testing.T) {
	p := compile(t, example())
	for _, c := range []struct {
		who     *Principal
		watch   string
		want    []string
		visible bool
	}{
		{user("ann", "staff"), "orders", []string{"true", `value.owner == "ann"`}, true},
		{tenantOf("bob", "acme"), "orders", []string{`value.tenant == "acme" status,eta`, `value.owner == "bob"`}, true},
		{user("eve"), "orders", []string{`value.owner == "eve"`}, true},
		{user("eve", "staff"), "closed", nil, false},
		{user("eve", "staff"), "unknown", nil, false},
		{user("eve", "staff"), "log", nil, true},
		{user("eve"), "log", nil, false},
	} {
		got, some := p.Grants(c.who, c.watch)
		if !slices.Equal(texts(got), c.want) || some != (len(c.want) > 0) || got == nil || p.Visible(c.who, c.watch) != c.visible {
			t.Errorf("%s of %s: got %q, %t, want %q", c.who.Name, c.watch, texts(got), some, c.want)
		}
		d, some := p.View(c.who, c.watch)
		if want, err := view.Parse(view.Params{Grants: got}); err != nil || d.ID() != want.ID() || some != (len(c.want) > 0) {
			t.Errorf("%s of %s: the view is %+v, want one with %q", c.who.Name, c.watch, d.Params(), c.want)
		}
	}
	if p.Failures() != 0 {
		t.Errorf("%d expressions have failed", p.Failures())
	}
}

// TestDeletingNeedsReading: only what is read can be deleted, so a rule that allows deletes
// shows nothing of a watch of which nothing can be read.
func TestDeletingNeedsReading(t *testing.T) {
	p := compile(t, example())
	if p.Visible(Nobody(), "orders") || p.Changes(Nobody(), "orders") {
		t.Error("who can neither read nor write a watch can see it")
	}
	e := p.Explain(Nobody(), "orders", "", nil)
	if last := e.Rules[2]; e.Visible || !last.Held || last.Delete {
		t.Errorf("the explanation is %+v", e)
	}
}

// TestViewsAreShared: principals of whom the rules make the same have the same view.
func TestViewsAreShared(t *testing.T) {
	c := PolicyConfig{Watches: []WatchRules{{Name: "w"}}}
	for i := range 5 {
		name := fmt.Sprintf("r%d", i)
		c.Roles = append(c.Roles, Role{Name: name, When: fmt.Sprintf(`%q in principal.groups`, name)})
		c.Watches[0].Rules = append(c.Watches[0].Rules, Rule{Role: name, Read: fmt.Sprintf(`%q in principal.groups && value.n == %d`, name, i)})
	}
	p := compile(t, c)
	views := map[*view.Definition]bool{}
	for i := range 10_000 {
		d, ok := p.View(user(fmt.Sprint(i), fmt.Sprintf("r%d", i%5), fmt.Sprint("other", i)), "w")
		if !ok || d.Params().Grants[0].Filter != fmt.Sprintf("value.n == %d", i%5) {
			t.Fatalf("user %d sees %+v", i, d.Params())
		}
		views[d] = true
	}
	if len(views) != 5 {
		t.Errorf("there are %d views, want 5", len(views))
	}
	if n := p.subjects.len(); n != subjectsKept {
		t.Errorf("%d principals are remembered, want %d", n, subjectsKept)
	}
}

// TestViewsOfNamesAreIndexed: a rule about the name makes a view for each that an index
// finds.
func TestViewsOfNamesAreIndexed(t *testing.T) {
	p := compile(t, example())
	ids := map[string]bool{}
	for i := range 100 {
		d, _ := p.View(user(fmt.Sprint("user", i)), "orders")
		if !d.Indexed() || d.Costly() {
			t.Fatalf("%+v is not found by an index", d.Params())
		}
		ids[d.ID()] = true
	}
	if len(ids) != 100 {
		t.Errorf("there are %d views", len(ids))
	}
}

// TestMemoryIsBounded, whoever comes.
func TestMemoryIsBounded(t *testing.T) {
	r := newRecent[int, int](3, 100)
	for i := range 10 {
		r.put(i, i, 10)
		r.get(0)
	}
	if _, ok := r.get(0); !ok || r.len() != 3 || len(r.known) != 3 {
		t.Errorf("%d are remembered", r.len())
	}
	if r.put(0, 5, 10) != 0 {
		t.Error("a value was replaced")
	}
	if r.put(11, 11, 85); r.len() != 2 || r.bytes != 95 {
		t.Errorf("%d are remembered, of %d bytes", r.len(), r.bytes)
	}
	if r.put(12, 12, 101); r.len() != 0 || r.bytes != 0 {
		t.Errorf("one that is too large makes %d of %d bytes", r.len(), r.bytes)
	}
}

// TestLargeClaimsAreForgotten before they fill the memory.
func TestLargeClaimsAreForgotten(t *testing.T) {
	p := compile(t, example())
	for i := range subjectsKept {
		who := user(fmt.Sprint("user", i))
		who.Claims = map[string]any{"x": make([]any, 2000)}
		p.Visible(who, "orders")
	}
	if n := p.subjects.len(); n == 0 || p.subjects.bytes > mostBytes {
		t.Errorf("%d principals of %d bytes are remembered", n, p.subjects.bytes)
	}
	if n := p.reading.len(); n < subjectsKept/2 {
		t.Errorf("%d sets of grants are remembered, which have no claims", n)
	}
}

// TestManyGroups: what makes the filter too large allows nothing, and other rules still do.
func TestManyGroups(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles:   []Role{{Name: "anyone", When: "true"}},
		Watches: []WatchRules{{Name: "w", Rules: []Rule{{Role: "anyone", Read: "value.team in principal.groups"}, {Role: "anyone", Read: "value.x == 1"}}}},
	})
	for n, want := range map[int]int{500: 2, 5000: 1} {
		groups := make([]string, n)
		for i := range groups {
			groups[i] = fmt.Sprint("g", i)
		}
		if got, some := p.Grants(user("ann", groups...), "w"); len(got) != want || !some {
			t.Errorf("%d groups make %d grants, want %d", n, len(got), want)
		}
	}
	if p.Failures() != 1 {
		t.Errorf("%d expressions have failed, want 1", p.Failures())
	}
}

// TestManyAsk at the same time, and all who have the same values get the same view.
func TestManyAsk(t *testing.T) {
	p := compile(t, example())
	known := tenantOf("ann", "acme")
	want, _ := p.View(tenantOf("ann", "acme"), "orders")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				d, _ := p.View(known, "orders")
				other, _ := p.View(tenantOf("ann", "acme"), "orders")
				own, _ := p.View(user(fmt.Sprint(i%20)), "orders")
				if d != want || other != want || own == want || !p.Visible(known, "orders") {
					t.Error("the view is another one")
				}
				p.Write(known, "orders", "k", nil, resource(`{"owner":"ann"}`))
			}
		})
	}
	all.Wait()
}

// TestMissingClaims: the rule does not apply, and that is counted.
func TestMissingClaims(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles: []Role{
			{Name: "anyone", When: "true"}, {Name: "rash", When: `principal.claims.level > 3`},
			{Name: "poor", When: "true", With: []RoleValue{{"org", "principal.claims.org"}}},
		},
		Watches: []WatchRules{{Name: "w", Rules: []Rule{
			{Role: "anyone", Read: "value.level < principal.claims.level"}, {Role: "rash", Read: "true"}, {Role: "poor", Read: "true"},
			{Role: "anyone", Read: `has(principal.claims.level) && value.x == 1`},
		}}},
	})
	if got, some := p.Grants(user("ann"), "w"); some || len(got) != 0 {
		t.Errorf("got %q", texts(got))
	}
	if p.Failures() != 3 {
		t.Errorf("%d expressions have failed, want 3", p.Failures())
	}
	who := user("bob")
	who.Claims = map[string]any{"level": 5.0, "org": "o"}
	if got, _ := p.Grants(who, "w"); !slices.Equal(texts(got), []string{"value.level < 5.0", "true", "true", "value.x == 1"}) {
		t.Errorf("got %q", texts(got))
	}
}

// TestClaimsOfEveryKind: what encoding/json makes of claims, and what it does not.
func TestClaimsOfEveryKind(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles:   []Role{{Name: "anyone", When: "true"}},
		Watches: []WatchRules{{Name: "w", Rules: []Rule{{Role: "anyone", Read: "value.x == principal.claims.x"}}}},
	})
	deep := any("x")
	for range 100 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		claim any
		want  string
	}{
		{"a", `value.x == "a"`}, {5.0, "value.x == 5.0"}, {json.Number("12345678901234567"), "value.x == 12345678901234567"}, {json.Number("1e3"), "value.x == 1000.0"},
		{json.Number("9223372036854775807"), "value.x == 9223372036854775807"}, {json.Number("9223372036854775808"), ""}, {json.Number("1e999"), ""}, {1 << 53, "value.x == 9007199254740992"},
		{9007199254740991.0, "value.x == 9.007199254740991e+15"}, {9007199254740992.0, ""}, {-1e20, ""}, {[]any{1e20}, ""}, {nil, "value.x == null"}, {true, "value.x == true"}, {3, "value.x == 3"},
		{[]string{"a"}, `value.x == ["a"]`}, {[]any{"a", 1.5}, `value.x == ["a", 1.5]`}, {map[string]any{"b": 1.0, "a": nil}, `value.x == {"a": null, "b": 1.0}`},
		{struct{}{}, ""}, {"\xff", ""}, {deep, ""}, {strings.Repeat("a", view.MaxGrantsText), ""},
	} {
		who := user("ann")
		who.Claims = map[string]any{"x": c.claim}
		got, _ := p.Grants(who, "w")
		if s := strings.Join(texts(got), " "); s != c.want {
			t.Errorf("%.50v: got %s, want %s", c.claim, s, c.want)
		}
	}
}

// TestHostileNames: who has the name of another issuer is somebody else if the rule says so, and
// no name, group or claim is taken for anything but text.
func TestHostileNames(t *testing.T) {
	p := compile(t, PolicyConfig{
		Roles:   []Role{{Name: "one", When: `principal.issuer == "https://idp.example.com" && !("banned" in principal.groups)`, With: []RoleValue{{"group", "principal.groups"}, {"x", "principal.claims.x"}}}},
		Watches: []WatchRules{{Name: "w", Rules: []Rule{{Role: "one", Read: `value.owner == principal.name || value.team in role.group || value.x == role.x`}}}},
	})
	for _, hostile := range []string{`"] || true || ["`, `" || true || "`, `\" || true //`, "'", "\n", "\x00", "true", "principal.name", "${NAME}", "\u202e"} {
		who := user(hostile, hostile)
		who.Claims = map[string]any{"x": hostile}
		d, ok := p.View(who, "w")
		if !ok {
			t.Fatalf("%q has no view", hostile)
		}
		for _, value := range []string{`{"owner":"a","team":"b","x":"c"}`, `{"owner":"","team":"","x":""}`, `{}`} {
			if matches, _ := d.Matches(stream.Resource{Key: "k", Revision: 1, Value: []byte(value)}); matches {
				t.Errorf("%q sees %s by %+v", hostile, value, d.Params().Grants)
			}
		}
	}
	other := user("ann")
	other.Issuer = "https://other.example.com"
	if _, ok := p.View(other, "w"); ok {
		t.Error("the name of another issuer is taken for the same")
	}
}

// TestPolicyMistakes: all are reported, each at its place.
func TestPolicyMistakes(t *testing.T) {
	_, err := CompilePolicy(PolicyConfig{
		Roles: []Role{
			{Name: "a", When: `"x" in principal.grups`}, {Name: "b", When: "principal.name"}, {Name: "b", When: "true"}, {Name: "c"},
			{Name: "d", When: "true", With: []RoleValue{{"in", "1"}, {"x", "principal.claims."}, {"y", "1"}, {"y", "2"}}},
			{Name: "e", When: "value.x == 1"},
			{Name: "ok", When: "true", With: []RoleValue{{"tenant", "principal.name"}}},
		},
		Watches: []WatchRules{
			{Name: "w", Rules: []Rule{
				{Role: "okk", Read: "true"}, {Role: "ok", Read: "value.t == role.tenat"}, {Role: "ok"}, {Role: "ok", Fields: []string{"a"}, Write: "true"},
				{Role: "ok", Read: "true", Fields: []string{"a..b"}}, {Role: "ok", Write: "value.x == 1", Delete: "new.x == 1"}, {Read: "true"}, {Role: "a", Read: "true"},
			}},
			{Name: "w"},
		},
	})
	var all PolicyErrors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	want := []string{
		`role 1, when: column 8: there is no principal.grups: did you mean "principal.groups"?`,
		`role 2, when: column 1: the expression gives a value of type string, want true or false: compare it with something, with ==`,
		`role 3, name: the role "b" is declared twice`,
		`role 4, when: column 1: the expression is empty: want a condition, or "true"`,
		`role 5, with.in: "in" is no name for a value; want letters, digits and _, and no word of CEL`,
		`role 5, with.x: column 18: the filter ends too early: want an operand, or the other parenthesis, here`,
		`role 5, with.y: the value "y" is given twice`,
		`role 6, when: column 1: there is no name "value" here; `,
		`watch 1, rule 1, role: there is no role "okk"; did you mean "ok"?`,
		`watch 1, rule 2, read: column 12: there is no role.tenat: did you mean "role.tenant"?`,
		`watch 1, rule 3: the rule allows nothing; want read, write or delete`,
		`watch 1, rule 4, fields: fields are what read lets be seen of values; want read too`,
		`watch 1, rule 5, fields: column 3: a name is missing before .: want names with dots between them, and commas between paths`,
		`watch 1, rule 6, write: column 1: there is no name "value" here: `,
		`watch 1, rule 6, delete: column 1: there is no name "new" here: `,
		`watch 1, rule 7, role: role is missing; want the name of a role`,
		`watch 2: the watch "w" is given twice`,
	}
	got := strings.Split(err.Error(), "\n")
	for i, line := range want {
		if i >= len(got) || !strings.HasPrefix(strings.ReplaceAll(got[i], "here;", "here:"), strings.ReplaceAll(line, "here;", "here:")) {
			t.Errorf("got  %q\nwant %q", got[min(i, len(got)-1)], line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d mistakes, want %d:\n%s", len(got), len(want), err)
	}
}

func TestTooMany(t *testing.T) {
	c := example()
	for range MaxRules {
		c.Watches[0].Rules = append(c.Watches[0].Rules, Rule{Role: "staff", Read: "true"})
	}
	for range MaxValues {
		c.Roles[2].With = append(c.Roles[2].With, RoleValue{fmt.Sprint("v", len(c.Roles[2].With)), "1"})
	}
	_, err := CompilePolicy(c)
	for _, want := range []string{"there are 67 rules, and at most 64 are allowed", "there are 33 values, and at most 32 are allowed"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
