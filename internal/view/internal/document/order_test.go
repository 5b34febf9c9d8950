package document

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestFind(t *testing.T) {
	columns, err := ParseOrder("a.b,-c,a,a.d.e")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"a":{"b":1,"d":{"e":[2]}},"c":"x"}`:     `["1" "\"x\"" "{\"b\":1,\"d\":{\"e\":[2]}}" "[2]"]`,
		` { "c" : null , "a" : { "b" : true } } `: `["true" "null" "{ \"b\" : true }" ""]`,
		`{"c":1,"c":2,"a":{"b":1},"a":3}`:         `["" "2" "3" ""]`,
		`{"a":{"b":1,"b":2}}`:                     `["2" "" "{\"b\":1,\"b\":2}" ""]`,
		`{"\u0061":{"\u0062":1}}`:                 `["1" "" "{\"\\u0062\":1}" ""]`,
		`{"a":{"b":1},"c":`:                       `["" "" "" ""]`,
		`[{"a":1}]`:                               `["" "" "" ""]`,
		`"a"`:                                     `["" "" "" ""]`,
		`{}`:                                      `["" "" "" ""]`,
		``:                                        `["" "" "" ""]`,
	} {
		found := [][]byte{[]byte("of"), []byte("another"), []byte("value"), nil}
		finderOf(columns).Find([]byte(value), found)
		if got := fmt.Sprintf("%q", found); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// finderOf finds what columns are of.
func finderOf(columns []Column) *Finder {
	var paths []Path
	for _, c := range columns {
		paths = append(paths, c.At)
	}
	return NewFinder(paths)
}

// TestFindIsDecoded compares what is found with what encoding/json reads.
func TestFindIsDecoded(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	var values func(depth int) *rapid.Generator[string]
	values = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if depth == 0 || rapid.Bool().Draw(t, "scalar") {
				return rapid.SampledFrom([]string{"1", "null", `"{"`, "[1, {}]", "{}"}).Draw(t, "value")
			}
			text := "{"
			for i := range rapid.IntRange(1, 4).Draw(t, "members") {
				if i > 0 {
					text += ", "
				}
				text += fmt.Sprintf("%q: %s", names.Draw(t, "name"), values(depth-1).Draw(t, "member"))
			}
			return text + "}"
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		value := values(3).Draw(t, "value")
		columns := make([]Column, rapid.IntRange(1, 4).Draw(t, "columns"))
		for i := range columns {
			columns[i].At = rapid.SliceOfN(names, 1, 3).Draw(t, "at")
		}
		found := make([][]byte, len(columns))
		finderOf(columns).Find([]byte(value), found)
		for i, c := range columns {
			want, is := lastAt(decode([]byte(value)), c.At)
			switch {
			case is != (found[i] != nil):
				t.Fatalf("%s of %s: found is %t, want %t", c, value, found[i] != nil, is)
			case is && fmt.Sprint(decode(found[i])) != fmt.Sprint(want):
				t.Fatalf("%s of %s: %s, want %v", c, value, found[i], want)
			}
		}
	})
}

// lastAt is what is at a path, of members with one name the last one.
func lastAt(v any, at Path) (found any, ok bool) {
	if len(at) == 0 {
		return v, true
	}
	o, _ := v.(object)
	for _, m := range o {
		if m.name == at[0] {
			found, ok = m.value, true
		}
	}
	if !ok {
		return nil, false
	}
	return lastAt(found, at[1:])
}
