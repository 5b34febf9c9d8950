package predicate

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

var given = map[string]Type{
	"principal.name": Text, "principal.groups": Texts, "principal.claims": Object, "role.tenant": Any,
}

func scopeOf(t testing.TB, open map[string]Type) *Scope {
	t.Helper()
	s, err := NewScope(given, open)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compileRule(t testing.TB, s *Scope, text string) *Rule {
	t.Helper()
	r, err := s.Compile(text, true, 1<<20)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// someone is what the names stand for in most tests.
func someone() map[string]any {
	return map[string]any{
		"principal.name": "ann", "principal.groups": []any{"dev", "staff"}, "role.tenant": "acme",
		"principal.claims": map[string]any{"level": int64(3), "admin": false, "regions": []any{"eu", "us"}, "at": map[string]any{"a.b": "c"}},
	}
}

// TestClose: names become constants, and what is constant then disappears.
func TestClose(t *testing.T) {
	s := scopeOf(t, Resource())
	for _, c := range []struct{ rule, want string }{
		{`value.x == 1`, `value.x == 1`},
		{`value.tenant == role.tenant`, `value.tenant == "acme"`},
		{`"staff" in principal.groups && value.x == 1`, `value.x == 1`},
		{`"admin" in principal.groups || value.x == 1`, `value.x == 1`},
		{`"staff" in principal.groups || value.x == 1`, `true`},
		{`"admin" in principal.groups && value.x == 1`, ``},
		{`!("admin" in principal.groups)`, `true`},
		{`value.team in principal.groups`, `value.team in ["dev", "staff"]`},
		{`value.region in principal.claims.regions`, `value.region in ["eu", "us"]`},
		{`principal.claims.admin ? true : value.owner == principal.name`, `value.owner == "ann"`},
		{`value.public ? true : value.owner == principal.name`, `value.public ? true : value.owner == "ann"`},
		{`has(principal.claims.org) && value.org == principal.claims.org`, ``},
		{`!has(principal.claims.org) || value.org == principal.claims.org`, `true`},
		{`value.org == principal.claims.org`, ``},
		{`value.org == principal.claims.org || value.x == 1`, `value.x == 1`},
		{`!(value.org == principal.claims.org)`, ``},
		{`!(value.org == principal.claims.org || value.x == 1)`, `!(value.x == 1 || dyn(1 / 0))`},
		{`value.level <= principal.claims.level + 1`, `value.level <= 4`},
		{`value.members.exists(m, m == principal.name)`, `value.members.exists(m, m == "ann")`},
		{`principal.groups.exists(g, g == "staff") && value.x == 1`, `value.x == 1`},
		{`principal.groups.exists(g, key.startsWith(g + "/"))`, `["dev", "staff"].exists(g, key.startsWith(g + "/"))`},
		{`value.members.exists(m, m == principal.claims.org)`, `value.members.exists(m, dyn(1 / 0))`},
		{`value[principal.name].x == 1`, `value["ann"].x == 1`},
		{`has(value[principal.name].x)`, `has(value["ann"].x)`},
		{`key.startsWith(role.tenant + "/")`, `key.startsWith("acme/")`},
		{`(value.x && principal.name == "ann") == true`, `(value.x && true) == true`},
		{`value.seen > timestamp("2026-01-02T03:04:05Z") && principal.name == "ann"`, `value.seen > timestamp("2026-01-02T03:04:05Z")`},
		{`type(principal.name) == type(value.x)`, `type("ann") == type(value.x)`},
		{`value.at == principal.claims.at`, `value.at == {"a.b": "c"}`},
		{`key == principal.claims.level`, `key == dyn(3)`},
		{`!(key == principal.claims.level)`, `!(key == dyn(3))`},
		{`principal.claims.level`, ``},
		{`principal.claims.level && value.x`, ``},
		{`principal.claims.level || value.x`, `value.x`},
	} {
		r := compileRule(t, s, c.rule)
		b := r.Bind(someone())
		p, err := r.Filter(b, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		got := ""
		if p != nil {
			got = p.String()
		}
		if got != c.want || r.Never(b) != (c.want == "") {
			t.Errorf("%s is closed to %s, want %s", c.rule, got, c.want)
		}
	}
}

// TestConstantsChangeNoMeaning: whatever a name, a group or a claim is, it is only compared.
func TestConstantsChangeNoMeaning(t *testing.T) {
	s := scopeOf(t, Resource())
	r := compileRule(t, s, `value.owner == principal.name || value.team in principal.groups`)
	for _, hostile := range []string{
		`"] || true || ["`, `" || true || "`, `\" || true || \"`, `' || true || '`, "\\", `\`, `a" == "a`, "\n\"||true//", "\x00", "\u2028", "true", `"`, `\x22 || true`, "//", `""" || true`, "`", "${HOME}", "{region}", "\ufffd", "\U0010ffff",
	} {
		b := r.Bind(map[string]any{"principal.name": hostile, "principal.groups": []any{hostile}})
		p, err := r.Filter(b, 1<<20)
		if err != nil || p == nil {
			t.Fatalf("%q: %v", hostile, err)
		}
		for value, want := range map[string]bool{hostile: true, "other": false, "": false} {
			var in Input
			in.Set("k", 1)
			in.SetValue(map[string]any{"owner": value, "team": value})
			if got, _ := p.Holds(&in); got != want {
				t.Errorf("for the name %q the filter %s of the value %q is %t", hostile, p, value, got)
			}
		}
	}
}

// TestWhatNoTextStandsFor: such a value makes no filter. "\xff" is the letter ÿ in CEL.
func TestWhatNoTextStandsFor(t *testing.T) {
	s := scopeOf(t, Resource())
	r := compileRule(t, s, `value.owner == role.tenant`)
	for _, v := range []any{"\xff", "a\xc3", []any{"\xff"}, map[string]any{"\xff": int64(1)}, map[string]any{"a": "\xff"}, math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := r.Bind(map[string]any{"role.tenant": v})
		if p, err := r.Filter(b, 1<<20); p != nil || err != nil || !b.Failed() {
			t.Errorf("%v: got %v, %v", v, p, err)
		}
	}
}

func TestBindingKeys(t *testing.T) {
	s := scopeOf(t, Resource())
	r := compileRule(t, s, `value.x == role.tenant`)
	keys := map[string]any{}
	for _, v := range []any{
		nil, true, false, int64(1), uint64(1), 1.0, "1", []byte("1"), "", []any{}, []any{"1"}, []any{"1", "2"}, []any{"12"}, []any{[]any{"1"}},
		map[string]any{}, map[string]any{"1": "2"}, math.Copysign(0, -1), 0.0, int64(0), "<nil>", "true",
	} {
		key := r.Bind(map[string]any{"role.tenant": v}).Key()
		if other, taken := keys[key]; taken {
			t.Errorf("%#v and %#v have the same key", v, other)
		}
		keys[key] = v
	}
	a, b := someone(), someone()
	b["principal.name"] = "bob"
	if r.Bind(a).Key() != r.Bind(b).Key() {
		t.Error("a name that the rule does not use makes a difference")
	}
}

// TestRuleMistakes: each has its place and what would be right.
func TestRuleMistakes(t *testing.T) {
	s := scopeOf(t, Resource())
	for _, c := range []struct {
		text   string
		offset int
		want   string
	}{
		{`value.x == 1 && principal.grups == 1`, 16, `there is no principal.grups: did you mean "principal.groups"?`},
		{`role.tenat == "a"`, 0, `there is no role.tenat: did you mean "role.tenant"?`},
		{`principal == 1`, 0, `"principal" cannot be used as a whole: want principal.claims, principal.groups, principal.name`},
		{`principal["name"] == "a"`, 0, `"principal" cannot be used as a whole`},
		{`has(principal.name)`, 0, ``},
		{`valu.x == 1`, 0, `there is no name "valu" here: did you mean "value"?`},
		{`value.x = 1`, 8, `= is no operator: did you mean ==?`},
		{`principal.name`, 0, `gives a value of type string, want true or false`},
		{`principal.name == 1`, 15, `== cannot be applied to (string, int)`},
		{`value.l.exists(principal, principal == 1)`, 15, `the macro hides the name "principal"`},
		{`value.l.exists(role, true)`, 15, `the macro hides the name "role"`},
		{`key.matches(principal.name)`, 21, `the pattern is not a constant`},
		{`value.x.startswith("a")`, 0, `there is no function "startswith": did you mean "startsWith"?`},
	} {
		_, err := s.Compile(c.text, true, 1<<20)
		var m *document.Mistake
		if !errors.As(err, &m) {
			t.Errorf("%s: got %v", c.text, err)
			continue
		}
		if !strings.Contains(m.Error(), c.want) || c.want != "" && !strings.Contains(c.want, "function") && m.Offset != c.offset {
			t.Errorf("%s: got %d: %v, want %d: %s", c.text, m.Offset, m, c.offset, c.want)
		}
	}
}

var ruleLeaves = []string{
	`value.a == principal.name`, `value.a == role.tenant`, `principal.name == "ann"`, `"staff" in principal.groups`, `value.a in principal.groups`, `has(principal.claims.org)`,
	`principal.claims.org == value.b`, `principal.claims.level > 2`, `value.b < principal.claims.level`, `principal.claims.admin`, `value.c`, `value.missing == 1`, `true`, `false`,
	`key == role.tenant`, `key.startsWith(principal.name)`, `value.l.exists(x, x == principal.name)`, `value.l.all(x, x == principal.claims.org)`, `principal.groups.exists(g, g == value.a)`,
	`labels.a == role.tenant`, `labels[principal.name] == "x"`, `value[principal.name] == 1`, `principal.claims.level`, `value.b + principal.claims.level == 4`, `size(principal.groups) == 2`,
	`value.l == principal.claims.regions`, `value.l.map(x, x + principal.name) == [principal.name]`, `has(value[principal.name].x)`, `{"a": role.tenant}.a == value.a`, `[role.tenant, value.a][0] == "acme"`,
}

func drawRule(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom(ruleLeaves).Draw(t, "leaf")
	}
	a := func() string { return "(" + drawRule(t, depth-1) + ")" }
	switch rapid.IntRange(0, 4).Draw(t, "operator") {
	case 0:
		return a() + " && " + a()
	case 1:
		return a() + " || " + a()
	case 2:
		return "!" + a()
	case 3:
		return a() + " ? " + a() + " : " + a()
	}
	return a() + " == " + a()
}

func drawAny(t *rapid.T) any {
	return rapid.SampledFrom([]any{"ann", "acme", "staff", "", "x", int64(1), int64(3), 3.0, 2.5, true, false, nil, []any{"ann"}, []any{}, map[string]any{"x": int64(1)}, `"`}).Draw(t, "value")
}

func drawGiven(t *rapid.T) map[string]any {
	out := map[string]any{"principal.name": rapid.SampledFrom([]string{"ann", "acme", `"`, ""}).Draw(t, "name"), "role.tenant": drawAny(t)}
	out["principal.groups"] = []any{"staff", "dev"}[rapid.IntRange(0, 2).Draw(t, "groups"):]
	claims := map[string]any{}
	for _, name := range []string{"org", "level", "admin", "regions"} {
		if rapid.Bool().Draw(t, "has "+name) {
			claims[name] = drawAny(t)
		}
	}
	out["principal.claims"] = claims
	return out
}

// TestClosedMeansTheSame: a closed rule is true of a resource exactly if the rule is, in
// which the names have their values.
func TestClosedMeansTheSame(t *testing.T) {
	s := scopeOf(t, Resource())
	closed := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawRule(t, 3)
		r, err := s.Compile(text, true, 1<<8)
		var m *document.Mistake
		if errors.As(err, &m) && strings.Contains(m.Problem, "cannot be applied") {
			return // bool == string, say
		}
		if errors.As(err, &m) && strings.Contains(m.Problem, "could cost") {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		names := drawGiven(t)
		b := r.Bind(names)
		p, err := r.Filter(b, 1<<8)
		if err != nil {
			t.Fatalf("%s with %v: %v", text, names, err)
		}
		closed++
		for range 5 {
			value := map[string]any{}
			for _, name := range []string{"a", "b", "c", "ann"} {
				if rapid.IntRange(0, 3).Draw(t, "has "+name) > 0 {
					value[name] = drawAny(t)
				}
			}
			value["l"] = []any{drawAny(t), "ann"}[rapid.IntRange(0, 2).Draw(t, "list"):]
			labels := map[string]string{"a": rapid.SampledFrom([]string{"acme", "x"}).Draw(t, "label")}
			key := rapid.SampledFrom([]string{"acme", "ann/1", "x"}).Draw(t, "key")
			all := map[string]any{"key": key, "value": value, "labels": labels, "revision": int64(7)}
			for name, v := range names {
				all[name] = v
			}
			direct, _ := r.Value(all)
			var in Input
			in.Set(key, 7)
			in.SetValue(value)
			in.SetLabels(labels)
			holds := false
			if p != nil {
				holds, _ = p.Holds(&in)
			}
			if holds != (direct == true) {
				t.Errorf("%s with %v is closed to %v: of %v it is %t, want %v", text, names, p, value, holds, direct)
			}
		}
	})
	if closed == 0 {
		t.Error("no rule was closed")
	}
}

// FuzzClose: no name and no text makes a filter mean anything else.
func FuzzClose(f *testing.F) {
	f.Add(`value.a == principal.name`, "ann", "b")
	f.Add(`value.a in principal.groups || key == role.tenant`, `"] || true || ["`, "\\")
	f.Add(`!(value.a == principal.claims.x)`, "\xff", "\x00")
	s := scopeOf(f, Resource())
	f.Fuzz(func(t *testing.T, text, name, other string) {
		if len(text) > 2<<10 || len(name)+len(other) > 1<<10 {
			return
		}
		r, err := s.Compile(text, true, 1<<20)
		if err != nil {
			return
		}
		names := map[string]any{"principal.name": name, "principal.groups": []any{name, other}, "role.tenant": other, "principal.claims": map[string]any{"x": name}}
		b := r.Bind(names)
		p, err := r.Filter(b, 1<<20)
		if err != nil || b.Failed() {
			return // the rule does not apply
		}
		for _, v := range []string{name, other, "z"} {
			value := map[string]any{"a": v}
			all := map[string]any{"key": v, "value": value, "labels": map[string]string{"a": v}, "revision": int64(7)}
			for name, v := range names {
				all[name] = v
			}
			direct, err := r.Value(all)
			var in Input
			in.Set(v, 7)
			in.SetValue(value)
			in.SetLabels(map[string]string{"a": v})
			holds := false
			if p != nil {
				holds, _ = p.Holds(&in)
			}
			if holds != (direct == true) && !errors.Is(err, ErrCost) {
				t.Errorf("%s with %q and %q is closed to %v: %t, want %v", text, name, other, p, holds, direct)
			}
		}
	})
}

// TestRuleOfOtherNames: rules of writes are about key, old and new.
func TestRuleOfOtherNames(t *testing.T) {
	s := scopeOf(t, map[string]Type{"key": Text, "old": Any, "new": Any})
	r := compileRule(t, s, `new.owner == principal.name && (old == null || old.owner == new.owner)`)
	if !r.Reads("old") || !r.Reads("principal.name") || r.Reads("key") {
		t.Error("wrong names")
	}
	for _, c := range []struct {
		old, new, want any
	}{
		{nil, map[string]any{"owner": "ann"}, true},
		{map[string]any{"owner": "bob"}, map[string]any{"owner": "ann"}, false},
		{nil, map[string]any{"owner": "bob"}, false},
		{nil, nil, nil},
	} {
		names := someone()
		names["key"], names["old"], names["new"] = "k", c.old, c.new
		if got, _ := r.Value(names); got != c.want {
			t.Errorf("from %v to %v: got %v, want %v", c.old, c.new, got, c.want)
		}
	}
	if _, err := s.Compile("value.x == 1", true, 1<<20); err == nil || !strings.Contains(err.Error(), `there is no name "value" here`) {
		t.Errorf("got %v", err)
	}
}

// TestRuleCosts: a rule that could take too long is refused, and one that takes too many
// steps is given up.
func TestRuleCosts(t *testing.T) {
	s := scopeOf(t, Resource())
	long := strings.Repeat(`value.a.exists(x, value.b.contains(x)) || `, 3) + "true"
	if _, err := s.Compile(long, true, 1<<20); err == nil || !strings.Contains(err.Error(), "units") {
		t.Errorf("got %v", err)
	}
	r := compileRule(t, s, `principal.groups.all(g, g != "x") && value.a == 1`)
	var many []any
	for i := range 1_000_000 {
		many = append(many, fmt.Sprint(i))
	}
	if b := r.Bind(map[string]any{"principal.groups": many}); !b.Failed() || !r.Never(b) {
		t.Error("an endless evaluation is not given up")
	}
}
