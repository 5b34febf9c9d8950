package files

import (
	"path"
	"strings"
	"testing"
)

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]format{
		"a.json": jsonFormat, "a.yaml": yamlFormat, "a.yml": yamlFormat, "A.Json": jsonFormat, "a.b.YAML": yamlFormat, "-.yml": yamlFormat,
		"~a.json": jsonFormat, " .json": jsonFormat, "a#.json": jsonFormat,
		"": noFormat, "json": noFormat, ".json": noFormat, "a": noFormat, "a.json~": noFormat, "a.jsonl": noFormat, "a.json.swp": noFormat,
		".a.json": noFormat, ".#a.json": noFormat, "#a.json": noFormat, "#a.json#": noFormat, "4913": noFormat, "a.json.tmp": noFormat, "..data": noFormat,
	} {
		if got := formatOf(name); got != want {
			t.Errorf("formatOf(%q) is %d, want %d", name, got, want)
		}
	}
}

func TestHidden(t *testing.T) {
	for name, want := range map[string]bool{
		".": false, "a": false, "a/b.json": false, "a.b/c": false, "..data": true, ".git": true, ".git/config": true, "a/.git/b": true, "a/..data": true,
	} {
		if got := hidden(name); got != want {
			t.Errorf("hidden(%q) is %v", name, got)
		}
	}
}

// FuzzKey: a key and its extension make the name, and a name has the same key
// in any format.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{"a.json", "x/y.yaml", "x.y/z.yml", ".json", "x/.json", "a.json/b.json", "a\xff.JSON", "a."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if formatOf(path.Base(name)) == noFormat {
			return
		}
		key, ext := keyOf(name), path.Ext(name)
		if key+ext != name || key == "" || strings.HasSuffix(key, "/") {
			t.Errorf("the key of %q is %q", name, key)
		}
		for _, other := range []string{".json", ".yaml", ".yml", ".YML"} {
			if got := keyOf(key + other); got != key || formatOf(path.Base(key+other)) == noFormat {
				t.Errorf("the key of %q is %q, want %q", key+other, got, key)
			}
		}
	})
}
