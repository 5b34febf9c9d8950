package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// direct evaluates expressions by plain CEL, with the principal and the role as they are.
type direct struct{ env *cel.Env }

func newDirect(t testing.TB) direct {
	t.Helper()
	env, err := cel.NewEnv(
		cel.Variable("key", cel.StringType), cel.Variable("value", cel.DynType), cel.Variable("revision", cel.IntType), cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("old", cel.DynType), cel.Variable("new", cel.DynType),
		cel.Variable("principal", cel.MapType(cel.StringType, cel.DynType)), cel.Variable("role", cel.MapType(cel.StringType, cel.DynType)),
	)
	if err != nil {
		t.Fatal(err)
	}
	return direct{env}
}

// value evaluates an expression; false: it fails.
func (d direct) value(t rapid.TB, text string, names map[string]any) (any, bool) {
	t.Helper()
	ast, issues := d.env.Compile(text)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", text, issues.Err())
	}
	program, err := d.env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := program.Eval(names)
	if err != nil {
		return nil, false
	}
	return v.Value(), true
}

// given returns the names of a principal and of a role, if it is held.
func (d direct) given(t rapid.TB, r Role, who *Principal) (map[string]any, bool) {
	of := map[string]any{"mechanism": who.Mechanism, "groups": slices.Compact(slices.Sorted(slices.Values(who.Groups))), "claims": orEmpty(who.Claims)}
	if who.Name != "" {
		of["issuer"], of["name"] = who.Issuer, who.Name
	}
	names := map[string]any{"principal": of}
	if held, ok := d.value(t, r.When, names); !ok || held != true {
		return nil, false
	}
	with := map[string]any{}
	for _, v := range r.With {
		value, ok := d.value(t, v.Expression, names)
		if !ok {
			return nil, false
		}
		with[v.Name] = value
	}
	names["role"] = with
	return names, true
}

func orEmpty(claims map[string]any) map[string]any {
	if claims == nil {
		return map[string]any{}
	}
	return claims
}

// see returns which members of the value of a resource may be seen. whole: all of it.
func (d direct) see(t rapid.TB, c PolicyConfig, who *Principal, r stream.Resource) (members map[string]json.RawMessage, seen, whole bool) {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(r.Value, &all)
	members = map[string]json.RawMessage{}
	for _, rule := range c.Watches[0].Rules {
		names, held := d.given(t, c.role(rule.Role), who)
		if !held || rule.Read == "" {
			continue
		}
		names["key"], names["revision"], names["labels"] = r.Key, int64(r.Revision), map[string]string{}
		var value any
		_ = json.Unmarshal(r.Value, &value)
		names["value"] = value
		if holds, _ := d.value(t, rule.Read, names); holds != true {
			continue
		}
		seen = true
		switch {
		case len(rule.Except) > 0:
			for name, m := range all {
				if !slices.Contains(rule.Except, name) {
					members[name] = m
				}
			}
		case len(rule.Fields) == 0:
			whole = true
		}
		for _, field := range rule.Fields {
			if m, ok := all[field]; ok {
				members[field] = m
			}
		}
	}
	return members, seen, whole
}

func (c PolicyConfig) role(name string) Role {
	return c.Roles[slices.IndexFunc(c.Roles, func(r Role) bool { return r.Name == name })]
}

var drawnRoles = []Role{
	{Name: "anyone", When: "true"},
	{Name: "staff", When: `"staff" in principal.groups || principal.claims.admin`},
	{Name: "tenant", When: "has(principal.claims.tenant)", With: []RoleValue{{"tenant", "principal.claims.tenant"}, {"all", "principal.groups"}}},
	{Name: "rash", When: "principal.claims.level > 2.0", With: []RoleValue{{"level", "principal.claims.level"}}},
	{Name: "local", When: `principal.mechanism == "token" && principal.name != ""`},
}

var drawnReads = map[string][]string{
	"": {
		"true", "value.owner == principal.name", `value.team in principal.groups`, `principal.name == "ann"`, `value.public || value.owner == principal.name`, "value.tenant == principal.claims.tenant",
		`!(value.team in principal.groups)`, `has(value.secret) && "staff" in principal.groups`, `principal.groups.exists(g, key.startsWith(g + "/"))`, `has(principal.claims.tenant) ? value.tenant == principal.claims.tenant : value.public`,
		`value.level < principal.claims.level || value.public`, `value.tags.exists(x, x == principal.name)`,
	},
	"tenant": {"value.tenant == role.tenant", "value.team in role.all && value.tenant == role.tenant", `role.tenant == "acme" && value.public`},
	"rash":   {"value.level <= role.level", "role.level > 5.0"},
}

var drawnWrites = []string{"", "true", "new.owner == principal.name", "old == null || old.owner == new.owner", `"staff" in principal.groups`, "new.level > old.level"}

func drawConfig(t *rapid.T) PolicyConfig {
	c := PolicyConfig{Roles: drawnRoles, Watches: []WatchRules{{Name: "w"}}}
	for range rapid.IntRange(0, 4).Draw(t, "rules") {
		r := Rule{Role: rapid.SampledFrom(drawnRoles).Draw(t, "role").Name}
		r.Read = rapid.SampledFrom(append(slices.Clone(drawnReads[""]), drawnReads[r.Role]...)).Draw(t, "read")
		r.Write = rapid.SampledFrom(drawnWrites).Draw(t, "write")
		switch rapid.IntRange(0, 2).Draw(t, "shows") {
		case 0:
			r.Except = append([]string{"secret"}, rapid.SliceOfN(rapid.SampledFrom([]string{"owner", "team", "level", "public"}), 0, 2).Draw(t, "not")...)
		case 1:
			r.Fields = rapid.SliceOfN(rapid.SampledFrom([]string{"owner", "team", "level", "public"}), 1, 2).Draw(t, "of")
		}
		c.Watches[0].Rules = append(c.Watches[0].Rules, r)
	}
	return c
}

func drawPrincipal(t *rapid.T) *Principal {
	who := &Principal{
		Mechanism: rapid.SampledFrom([]string{"token", "jwt"}).Draw(t, "mechanism"),
		Name:      rapid.SampledFrom([]string{"ann", "bob", `"`, `" || true || "`, ""}).Draw(t, "name"),
		Groups:    rapid.SliceOfN(rapid.SampledFrom([]string{"staff", "dev", "ops", `"] || true || ["`}), 0, 3).Draw(t, "groups"),
	}
	claims := map[string]any{}
	for _, name := range []string{"tenant", "level", "admin"} {
		if rapid.Bool().Draw(t, "has "+name) {
			claims[name] = rapid.SampledFrom([]any{"acme", "b", 1.0, 3.0, 7.0, true, false, nil, []any{"acme"}}).Draw(t, name)
		}
	}
	who.Claims = claims
	return who
}

const secret = "Top-Secret-7f3a"

func drawResource(t *rapid.T) stream.Resource {
	var members []string
	for name, values := range map[string][]string{
		"owner": {`"ann"`, `"bob"`, `"\""`, `""`, "1"}, "team": {`"staff"`, `"dev"`, "null"}, "tenant": {`"acme"`, `"b"`, "3"},
		"level": {"1", "3", "7.0", `"x"`}, "public": {"true", "false", `"yes"`}, "tags": {`["ann"]`, "[]", "{}"}, "secret": {`"` + secret + `"`},
	} {
		if rapid.IntRange(0, 4).Draw(t, "has "+name) > 0 {
			members = append(members, fmt.Sprintf("%q:%s", name, rapid.SampledFrom(values).Draw(t, name)))
		}
	}
	slices.Sort(members)
	key := rapid.SampledFrom([]string{"dev/1", "staff/x", "k"}).Draw(t, "key")
	return stream.Resource{Key: key, Revision: 7, Value: []byte("{" + strings.Join(members, ",") + "}")}
}

// TestViewShowsWhatRulesAllow: what the grants leave of a resource is what the rules allow
// if they are evaluated as they are written, and no other byte.
func TestViewShowsWhatRulesAllow(t *testing.T) {
	d := newDirect(t)
	seenOnce := map[view.Visibility]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		p, err := CompilePolicy(c)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			who := drawPrincipal(t)
			definition, _ := p.View(who, "w")
			for range 3 {
				r := drawResource(t)
				members, seen, whole := d.see(t, c, who, r)
				matches, _ := definition.Matches(r)
				if matches != seen {
					t.Fatalf("%+v with %+v: %s is seen %t by %+v, want %t", c.Watches[0].Rules, who, r.Value, matches, definition.Params().Grants, seen)
				}
				got, err := definition.Project(r)
				visibility, _ := definition.Visibility(r)
				seenOnce[visibility]++
				switch {
				case !seen && (err == nil || len(got.Value) > 0 || got.Key != ""):
					t.Fatalf("a hidden resource is projected to %+v", got)
				case whole && !bytes.Equal(got.Value, r.Value):
					t.Fatalf("%s is projected to %s, want all of it", r.Value, got.Value)
				case seen && !whole:
					checkMembers(t, got.Value, members)
				}
			}
		}
	})
	if len(seenOnce) != 3 {
		t.Errorf("the resources were seen %v, want every way", seenOnce)
	}
}

func checkMembers(t *rapid.T, got []byte, want map[string]json.RawMessage) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(got, &members); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if !maps.EqualFunc(members, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) || bytes.Contains(got, []byte(secret)) {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// TestWritesAreWhatRulesAllow: a write is allowed exactly if the old resource is seen whole,
// and some rule is true of the change; and a hidden resource is told from none by nothing
// but success.
func TestWritesAreWhatRulesAllow(t *testing.T) {
	d := newDirect(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		p, err := CompilePolicy(c)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			who, r, updated := drawPrincipal(t), drawResource(t), drawResource(t)
			old := &r
			if rapid.Bool().Draw(t, "absent") {
				old = nil
			}
			got := p.Write(who, "w", r.Key, old, &updated)
			allowed := d.allows(t, c, who, r.Key, old, &updated)
			seen, whole := false, false
			if old != nil {
				_, seen, whole = d.see(t, c, who, r)
				allowed = allowed && whole
			}
			if got.Allowed != allowed {
				t.Fatalf("%+v with %+v, from %+v to %s: got %+v, want %t", c.Watches[0].Rules, who, old, updated.Value, got, allowed)
			}
			if old != nil && !seen {
				absent := p.Write(who, "w", r.Key, nil, &updated)
				if !absent.Allowed && absent.Status != got.Status {
					t.Fatalf("a hidden resource is answered with %+v, and none with %+v", got, absent)
				}
				if gone := p.Delete(who, "w", r.Key, nil); gone.Status != p.Delete(who, "w", r.Key, old).Status {
					t.Fatalf("deleting nothing gives %+v", gone)
				}
			}
		}
	})
}

// allows reports whether some rule is true of a change.
func (d direct) allows(t rapid.TB, c PolicyConfig, who *Principal, key string, old, updated *stream.Resource) bool {
	for _, rule := range c.Watches[0].Rules {
		names, held := d.given(t, c.role(rule.Role), who)
		if !held || rule.Write == "" {
			continue
		}
		names["key"], names["old"], names["new"] = key, nil, nil
		for name, r := range map[string]*stream.Resource{"old": old, "new": updated} {
			var value any
			if r != nil {
				_ = json.Unmarshal(r.Value, &value)
				names[name] = value
			}
		}
		if holds, _ := d.value(t, rule.Write, names); holds == true {
			return true
		}
	}
	return false
}
