package consul

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestEpochs: equal configurations that have seen the same content get the same
// name, all others different ones.
func TestEpochs(t *testing.T) {
	base := Config{Address: "a:1", Resources: Resources{Type: artistType}}
	name := func(change func(*Config, *epochs)) string {
		c := base
		e := newEpochs(&c)
		change(&c, &e)
		again := newEpochs(&c)
		again.cluster, again.broken = e.cluster, e.broken
		return again.name()
	}
	state := map[string]object{"a": {5, "x"}, "b": {6, "y"}}
	seen := map[string]string{}
	for what, change := range map[string]func(*Config, *epochs){
		"alike":           func(*Config, *epochs) {},
		"another address": func(c *Config, _ *epochs) { c.Address = "b:1" },
		"another type":    func(c *Config, _ *epochs) { c.Type = "demo.v1.Artist" },
		"a partition":     func(c *Config, _ *epochs) { c.Partition = "x" },
		"a namespace":     func(c *Config, _ *epochs) { c.Namespace = "x" },
		"a prefix":        func(c *Config, _ *epochs) { c.NamePrefix = "x" },
		"a cluster":       func(_ *Config, e *epochs) { e.enter("x.consul") },
		"broken":          func(_ *Config, e *epochs) { e.renew(state) },
		"broken twice":    func(_ *Config, e *epochs) { e.renew(state); e.renew(state) },
		"empty":           func(_ *Config, e *epochs) { e.renew(nil) },
		"empty as well":   func(_ *Config, e *epochs) { e.renew(nil) },
		"another uid":     func(_ *Config, e *epochs) { e.renew(map[string]object{"a": {5, "z"}, "b": {6, "y"}}) },
	} {
		got := name(change)
		if other, twice := seen[got]; twice {
			t.Errorf("%s and %s are both called %s", what, other, got)
		}
		if got != stream.CanonicalEpoch(got) {
			t.Errorf("%s: %s cannot stand in a position as it is", what, got)
		}
		seen[got] = what
	}
	broken := func(_ *Config, e *epochs) { e.renew(state) }
	if a, b := name(broken), name(broken); a != b {
		t.Error("two that saw the same content have different names for it")
	}
	if back := name(func(_ *Config, e *epochs) { e.enter("x"); e.renew(state); e.enter("y") }); back != name(func(_ *Config, e *epochs) { e.enter("y") }) {
		t.Error("the name of another cluster depends on the previous one")
	}
}
