package view

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/watchtide/watchtide/stream"
)

func TestGroupKeys(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, c := range []struct{ by, value, key string }{
		{"s", `{"s":"up"}`, "up"},
		{"s", ` { "x" : [{"s":1}], "s" : "\u0075p" } `, "up"},
		{"s", `{"s":"1"}`, `"1"`}, {"s", `{"s":1}`, "1"}, {"s", `{"s":1.0}`, "1"}, {"s", `{"s":10e-1}`, "1"},
		{"s", `{"s":"null"}`, `"null"`}, {"s", `{"s":null}`, "null"}, {"s", `{}`, "null"}, {"s", `"text"`, "null"}, {"s", `[{"s":1}]`, "null"},
		{"s", `{"s":""}`, `""`}, {"s", `{"s":true}`, "true"}, {"s", `{"s":{"a":1}}`, "{}"}, {"s", `{"s":[1]}`, "[]"},
		{"s", `{"s":9007199254740993}`, "9007199254740993"}, {"s", `{"s":1e999999999}`, "1e999999999"}, {"s", `{"s":1e99999999999999999999}`, "null"},
		{"s", `{"s":1,"s":2}`, "2"}, {"a.s", `{"a":{"s":1},"a":{"s":3}}`, "3"}, {"a.s", `{"a":{"s":1},"a":{"t":1}}`, "null"}, {"a.s", `{"a":{"s":1}}`, "1"}, {"a.s", `{"a":[{"s":1}]}`, "null"},
		{"a,a.s", `{"a":{"s":1}}`, `[{},1]`},
		{"s", `{"s":"` + long + `"}`, long[:256]},
		{"s,t", `{"t":"<b>"}`, `[null,"<b>"]`},
		{`"s.t"`, `{"s.t":"up"}`, "up"},
	} {
		g, err := ParseGrouping([]string{c.by}, "")
		if err != nil {
			t.Fatal(err)
		}
		counter := g.Counter()
		counter.Read(stream.Resource{Value: []byte(c.value)})
		if got := string(counter.Key()); got != c.key {
			t.Errorf("by %s, %.60s is in %q, want %q", c.by, c.value, got, c.key)
		}
	}
}

func TestGroupingsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		by       []string
		sum, why string
	}{
		{nil, "", "no field is named"}, {[]string{"a,b", "c,d,e"}, "", "5 fields"}, {[]string{"a", `"a"`}, "", "named twice"},
		{[]string{"a."}, "", "by, column 3"}, {[]string{"a"}, "b,c", "want one"}, {[]string{"a"}, "[", "sum, column 1"},
		{[]string{strings.Repeat("a", MaxText+1)}, "", "bytes long"},
	} {
		if _, err := ParseGrouping(c.by, c.sum); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("by %.20q, sum %q: %v, want %q", c.by, c.sum, err, c.why)
		}
	}
}

func TestGroupingIDs(t *testing.T) {
	id := func(sum string, by ...string) string {
		g, err := ParseGrouping(by, sum)
		if err != nil {
			t.Fatal(err)
		}
		return g.ID()
	}
	if id("", "a,b") != id("", "a", `"b"`) {
		t.Error("equal groupings differ")
	}
	different := map[string]bool{}
	for _, one := range []string{id("", "a"), id("", "a,b"), id("", "b,a"), id("b", "a"), id("", "a.b"), id("", `"a.b"`)} {
		different[one] = true
	}
	if len(different) != 6 {
		t.Errorf("%d of 6 groupings differ", len(different))
	}
}

// FuzzGroupKey: each key tells the value of its field again, and equal values have equal keys.
func FuzzGroupKey(f *testing.F) {
	for _, value := range []string{`"up"`, `"1"`, "1", "1.50", "null", `"\""`, `{"a":1}`, `""`, "[", `"\ud800"`} {
		f.Add(value)
	}
	g, err := ParseGrouping([]string{"s"}, "s")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value string) {
		whole := []byte(`{"s":` + value + `}`)
		counter := g.Counter()
		counter.Read(stream.Resource{Value: whole})
		key := string(counter.Key())
		var members map[string]any
		if !utf8.ValidString(value) || json.Unmarshal(whole, &members) != nil || len(members) != 1 {
			return
		}
		text, isText := members["s"].(string)
		var told any
		if json.Unmarshal([]byte(key), &told) != nil {
			told = key
		}
		if isText && len(text) <= MaxGroupText && told != text {
			t.Fatalf("%s is in %q, which tells %v", value, key, told)
		}
		if _, isNumber := members["s"].(float64); isNumber && key != "null" {
			if _, ok := told.(float64); !ok && json.Valid([]byte(value)) && len(value) < 100 {
				t.Fatalf("%s is in %q", value, key)
			}
		}
		if len(key) > 6*MaxGroupText+2 {
			t.Fatalf("a key has %d bytes", len(key))
		}
	})
}
