package main

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestMergePatch holds the table of RFC 7396, Appendix A.
func TestMergePatch(t *testing.T) {
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		if got := mergePatch(value(t, c.target), value(t, c.patch)); !reflect.DeepEqual(got, value(t, c.want)) {
			t.Errorf("%s patched with %s: got %v, want %s", c.target, c.patch, got, c.want)
		}
	}
}

func TestMergePatchLeavesItsArgumentsAlone(t *testing.T) {
	target, patch := value(t, `{"a":{"b":1}}`), value(t, `{"a":{"c":2}}`)
	mergePatch(target, patch)
	if !reflect.DeepEqual(target, value(t, `{"a":{"b":1}}`)) || !reflect.DeepEqual(patch, value(t, `{"a":{"c":2}}`)) {
		t.Errorf("arguments were changed: target %v, patch %v", target, patch)
	}
}

func value(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}
