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
		"a cluster":       func(_ *Config, e *epochs) { e.enter("x.consul", "") },
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
		if name := stream.UnnumberedEpoch + got; stream.UnnumberedName(got) != name {
			t.Errorf("%s: %s cannot stand in a position as it is", what, name)
		}
		seen[got] = what
	}
	broken := func(_ *Config, e *epochs) { e.renew(state) }
	if a, b := name(broken), name(broken); a != b {
		t.Error("two that saw the same content have different names for it")
	}
	if back := name(func(_ *Config, e *epochs) { e.enter("x", ""); e.renew(state); e.enter("y", "") }); back != name(func(_ *Config, e *epochs) { e.enter("y", "") }) {
		t.Error("the name of another cluster depends on the previous one")
	}
}

// TestEpochOfAProcessBefore: the order that a process has named goes on in the next one, if it is that of the same
// cluster and collection.
func TestEpochOfAProcessBefore(t *testing.T) {
	of := func(prefix string) epochs {
		return newEpochs(&Config{HTTPAddress: "a:1", Resources: Resources{Collection: KV}, Prefix: prefix})
	}
	before := of("app/")
	before.enter("x.consul", "")
	before.renew(map[string]object{"a": {5, "x"}})
	renewed := before.name()
	for what, c := range map[string]struct {
		prefix, cluster string
		same            bool
	}{
		"the same":           {"app/", "x.consul", true},
		"another cluster":    {"app/", "y.consul", false},
		"another collection": {"other/", "x.consul", false},
		"no cluster":         {"app/", "", false},
	} {
		next := of(c.prefix)
		next.enter(c.cluster, stream.UnnumberedName(renewed))
		if got := next.name(); (got == renewed) != c.same {
			t.Errorf("%s: the epoch after %s is %s", what, renewed, got)
		}
	}
	again := of("app/")
	again.enter("x.consul", renewed)
	again.renew(map[string]object{"a": {4, "x"}})
	newest := again.name()
	if again.enter("x.consul", renewed); newest == renewed || again.name() != newest {
		t.Errorf("the epoch after %s is %s, and then %s", renewed, newest, again.name())
	}
}
