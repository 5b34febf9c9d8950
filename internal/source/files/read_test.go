package files

import (
	"os"
	"strings"
	"testing"
)

// TestReadGrowingFile: the size is outdated.
func TestReadGrowingFile(t *testing.T) {
	d := newDisk(t)
	for _, c := range []struct {
		before, after int
		limit         int64
		err           string
	}{
		{10, 10, 100, ""},
		{0, 0, 100, ""},
		{10, 5, 100, ""},
		{10, 11, 100, ""},
		{10, 90, 100, ""},
		{10, 100, 100, ""},
		{10, 101, 100, "the file has 101 bytes; max_value_bytes allows 100"},
		{10, 5000, 100, "max_value_bytes allows 100"},
		{99, 100, 100, ""},
		{100, 101, 100, "the file has 101 bytes; max_value_bytes allows 100"},
		{101, 10, 100, "the file has 101 bytes; max_value_bytes allows 100"},
	} {
		d.write("a", strings.Repeat("x", c.before))
		f, err := os.Open(d.path("a"))
		d.must(err)
		info, err := f.Stat()
		d.must(err)
		d.write("a", strings.Repeat("x", c.after))
		text, err := textOf(f, info, c.limit)
		d.must(f.Close())
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: got %d bytes, error %v", c, len(text), err)
			}
			continue
		}
		if err != nil || len(text) != c.after {
			t.Errorf("%+v: got %d bytes, error %v", c, len(text), err)
		}
	}
}

// TestRepeatedKeys: what is wrong in YAML is wrong in JSON, at the same place.
func TestRepeatedKeys(t *testing.T) {
	for text, place := range map[string]string{
		`{"a":1,"a":2}`: "1:8",
		"{\"a\":1,\n \"b\":[{\"c\":{},\n \"c\":[]}]}": "3:2",
		`{"a":{"x":1},"b":"a","a":null}`:              "1:22",
		`{"a\"\\":1,"a\"\\":2}`:                       "1:12",
		`[{"é":"é","é":1}]`:                           "1:11",
		`{"":1,"":2}`:                                 "1:7",
	} {
		for _, kind := range []format{jsonFormat, yamlFormat} {
			_, err := decode(kind, []byte(text), testLimit)
			if err == nil || !strings.HasPrefix(err.Error(), place+": the key ") || !strings.Contains(err.Error(), "a second time") {
				t.Errorf("%s as %v: got %v, want one at %s", text, kind, err, place)
			}
		}
	}
	if _, err := decode(jsonFormat, []byte(`{"\u0061":1,"a":2}`), testLimit); err == nil {
		t.Error("a key with an escape is not found to be the same")
	}
	for _, text := range []string{
		`{"a":"a","b":{"a":"b"},"c":["a","a",{"a":1},{"a":1}],"d":"d"}`, `["a","a"]`, `"a"`, `{}`, `[]`, `{"a":"b","b":"a"}`,
	} {
		if got, err := decode(jsonFormat, []byte(text), testLimit); err != nil || string(got) != text {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
}
