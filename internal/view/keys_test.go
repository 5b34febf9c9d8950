package view

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		params  Params
		allowed string // of the keys a, a/1, a/2, b
	}{
		{Params{}, "a a/1 a/2 b"},
		{Params{Labels: "x"}, "a a/1 a/2 b"},
		{Params{Prefix: "a/"}, "a/1 a/2"},
		{Params{Filter: `key == "b"`}, "b"},
		{Params{Filter: `value.n > 1 && ("a/1" == key && labels.x == "y")`}, "a/1"},
		{Params{Filter: `key in ["b", "a/1", "b"]`}, "a/1 b"},
		{Params{Filter: `key in ["b", "a/1"] && key in ["a/1", "a/2"]`}, "a/1"},
		{Params{Prefix: "a/", Filter: `key in ["b", "a/1"]`}, "a/1"},
		{Params{Prefix: "a/", Filter: `key == "b"`}, ""},
		{Params{Filter: `key in []`}, ""},
		{Params{Filter: `key.startsWith("a/")`}, "a/1 a/2"},
		{Params{Filter: `key.startsWith("a/") && key in ["a", "a/2"]`}, "a/2"},
		{Params{Prefix: "a", Filter: `key.startsWith("a/")`}, "a/1 a/2"},
		{Params{Filter: `key == "b" || value.n > 1`}, "a a/1 a/2 b"},
		{Params{Filter: `!(key == "b")`}, "a a/1 a/2 b"},
		{Params{Filter: `value == "b"`}, "a a/1 a/2 b"},
	} {
		d, got := parse(t, c.params), ""
		for _, key := range []string{"a", "a/1", "a/2", "b"} {
			if d.Allows(key) {
				got += " " + key
			}
		}
		if got != "" {
			got = got[1:]
		}
		if got != c.allowed {
			t.Errorf("%+v allows %q, want %q", c.params, got, c.allowed)
		}
	}
}

// TestAllowsWhatMatches checks that a view can have each key of a resource that it has.
func TestAllowsWhatMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		p.Filter = rapid.SampledFrom([]string{"", `key == "a" && `, `key in ["a", "b/", "é"] && `, `key.startsWith("a") && `}).Draw(t, "keys") +
			"(" + drawExpression(t, 2).write(t) + ")"
		d, err := Parse(p)
		if err != nil {
			t.Skip(err)
		}
		r := drawResource(t, drawKey(t))
		if matches, _ := d.Matches(*r); matches && !d.Allows(r.Key) {
			t.Errorf("%+v has %q, and does not allow it", p, r.Key)
		}
	})
}
