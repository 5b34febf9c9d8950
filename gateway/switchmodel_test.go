package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// modelRule is a rule of access, and what it means, in code that has nothing to do with
// policies and views.
type modelRule struct {
	access.Rule
	group string // whose members have the role; empty: everybody
	holds func(groups []string, key string, value map[string]any) bool
}

// ruleSets are the rules that a watch may have: for all of it, for parts that overlap, and for
// nothing.
var ruleSets = [][]modelRule{
	{teamRule},
	{{access.Rule{Role: "red", Read: "value.n > 1", Fields: []string{"team", "n"}}, "red", atLeast(2)}, redRule},
	{teamRule, {access.Rule{Role: "anyone", Read: "value.n == 2"}, "", func(_ []string, _ string, v map[string]any) bool { return v["n"] == 2.0 }}},
	{{access.Rule{Role: "red", Read: "true"}, "red", func([]string, string, map[string]any) bool { return true }}, redRule},
	{{access.Rule{Role: "anyone", Read: `value.n > 0`, Fields: []string{"x"}}, "", atLeast(1)}},
	{redRule},
	{},
}

var (
	teamRule = modelRule{access.Rule{Role: "anyone", Read: "value.team in principal.groups"}, "", func(groups []string, _ string, v map[string]any) bool {
		team, is := v["team"].(string)
		return is && slices.Contains(groups, team)
	}}
	redRule = modelRule{access.Rule{Role: "blue", Read: `key.startsWith("a/")`, Fields: []string{"n", "y"}}, "blue", func(_ []string, key string, _ map[string]any) bool {
		return strings.HasPrefix(key, "a/")
	}}
)

func atLeast(least float64) func([]string, string, map[string]any) bool {
	return func(_ []string, _ string, v map[string]any) bool { n, is := v["n"].(float64); return is && n >= least }
}

// compileRules returns the policy that gives each watch one of the rule sets.
func compileRules(t *testing.T, sets map[string]int) *access.Policy {
	t.Helper()
	c := access.PolicyConfig{Roles: []access.Role{
		{Name: "anyone", When: `principal.name != ""`},
		{Name: "red", When: `"red" in principal.groups`}, {Name: "blue", When: `"blue" in principal.groups`},
	}}
	for watch, set := range sets {
		w := access.WatchRules{Name: watch}
		for _, r := range ruleSets[set] {
			w.Rules = append(w.Rules, r.Rule)
		}
		c.Watches = append(c.Watches, w)
	}
	p, err := access.CompilePolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// grantedPart is what a rule set lets members of some groups see of a watch, and what was sent of
// it. All connections of its history begin where a stream came to follow it.
type grantedPart struct {
	watch      string
	set        int
	groups     []string
	definition *view.Definition // nil: all of it
	history    *streamtest.History
}

func (p *grantedPart) String() string {
	return fmt.Sprintf("%s by rules %d for %v", p.watch, p.set, p.groups)
}

// name returns the name of an order of the watch in the part.
func (p *grantedPart) name(epoch string) string {
	if p.definition == nil {
		return stream.CanonicalEpoch(epoch)
	}
	return stream.CanonicalEpoch(p.definition.Epoch(stream.CanonicalEpoch(epoch)))
}

// see is the model of what may be seen of a resource.
func (p *grantedPart) see(r stream.Resource) (stream.Resource, bool) {
	var value map[string]any
	_ = json.Unmarshal(r.Value, &value) // of another kind of value no rule holds that looks into it
	seen, whole, fields := false, false, []string(nil)
	for _, rule := range ruleSets[p.set] {
		if (rule.group == "" || slices.Contains(p.groups, rule.group)) && rule.holds(p.groups, r.Key, value) {
			seen, whole, fields = true, whole || rule.Fields == nil, append(fields, rule.Fields...)
		}
	}
	if seen && !whole {
		r.Value = onlyFields(r.Value, fields)
	}
	return r, seen
}

// onlyFields returns a value with only some of its members.
func onlyFields(value []byte, fields []string) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil {
		return []byte("null")
	}
	var out []string
	for _, name := range []string{"x", "team", "n", "y"} {
		if slices.Contains(fields, name) {
			out = append(out, fmt.Sprintf("%q:%s", name, all[name]))
		}
	}
	return []byte("{" + strings.Join(out, ",") + "}")
}

// part returns what a rule set lets members of some groups see; nil: nothing.
func (w *switchWorld) part(watch string, set int, groups []string) *grantedPart {
	who := &access.Principal{Mechanism: "jwt", Issuer: accesstest.URL, Name: "ann", Groups: groups}
	d, sees := compileRules(w.t, map[string]int{watch: set}).View(who, watch)
	if !sees {
		return nil
	}
	if d.IsWhole() {
		d = nil
	}
	for _, p := range w.parts {
		if p.watch == watch && (p.definition == nil && d == nil || p.definition != nil && d != nil && p.definition.ID() == d.ID()) {
			return p
		}
	}
	p := &grantedPart{watch: watch, set: set, groups: groups, definition: d, history: &streamtest.History{
		Hides: d != nil && d.Hides(), DeletesUnnumbered: w.deletes != streamtest.OwnRevision,
	}}
	w.parts = append(w.parts, p)
	return p
}

// called returns the part of a watch in which an order has a name; nil: there is none.
func (w *switchWorld) called(watch, epoch string) *grantedPart {
	for _, p := range w.parts {
		if p.watch != watch {
			continue
		}
		for _, served := range w.watches[watch].served {
			if p.name(served) == epoch {
				return p
			}
		}
	}
	return nil
}
