package consul

import (
	"strings"
	"testing"
)

// TestKeysOfATarget: what Consul would keep under another name, or not at all, is refused before the first write.
func TestKeysOfATarget(t *testing.T) {
	target, err := NewTarget(Config{HTTPAddress: "consul.test:8500", Prefix: "app/", Resources: Resources{Collection: KV}})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for key, ok := range map[string]bool{
		"a": true, "a/b.c": true, "ключ": true, `quo"te\`: true, "a b": true, "a?b#c": true, "...": true,
		"": false, "a/": false, "/a": false, "a//b": false, "..": false, "a/../b": false, "./a": false, "a ": false, "a%20b": false,
	} {
		if err := target.Check(key, []byte("1")); (err == nil) != ok {
			t.Errorf("%q: error %v", key, err)
		}
	}
	if err := target.Check("a", []byte(`"`+strings.Repeat("x", maxKeyValueBytes)+`"`)); err == nil || !strings.Contains(err.Error(), "Consul takes 524288") {
		t.Errorf("of a large value: error %v", err)
	}
	if _, err := NewTarget(Config{HTTPAddress: "consul.test:8500", Resources: Resources{Collection: Health}}); err == nil || !strings.Contains(err.Error(), "the collection is health: want kv") {
		t.Errorf("of another collection: error %v", err)
	}
}
