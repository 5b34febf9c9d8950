package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/stream"
)

func TestParseKeys(t *testing.T) {
	for text, want := range map[string][]string{
		"a":             {"a"},
		"a/1,b c,日本":    {"a/1", "b c", "日本"},
		`"a,b",c`:       {"a,b", "c"},
		`"say ""x""",y`: {`say "x"`, "y"},
		`a"b`:           {`a"b`},
		"\xff\x00,b":    {"\xff\x00", "b"},
	} {
		if got, err := ParseKeys(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                  "keys, column 1: a key is missing",
		"a,":                                "keys, column 3: a key is missing",
		",a":                                "keys, column 1: a key is missing",
		`a,""`:                              "keys, column 3: a key is empty",
		`"a`:                                "keys, column 1: the quotation mark is never closed",
		`"a""`:                              "keys, column 1: the quotation mark is never closed",
		`b,"a"x`:                            "keys, column 6: there is something after the quotation mark",
		strings.Repeat("a,", MaxKeys) + "b": "there are more than 1000 keys",
		strings.Repeat("a", MaxKeysText+1):  "at most 65536 are allowed",
	} {
		var e *Error
		if _, err := ParseKeys(text); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
}

// TestFormatKeys: what is written is read again.
func TestFormatKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.StringMatching(`(?s)[a,"\x00é/ ]{1,6}`), 1, 5).Draw(t, "keys")
		if got, err := ParseKeys(FormatKeys(keys)); err != nil || !slices.Equal(got, keys) {
			t.Fatalf("%q is written as %s, and read as %q, %v", keys, FormatKeys(keys), got, err)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	f.Add(`a,"b,""c""",d`)
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			return
		}
		if again, err := ParseKeys(FormatKeys(keys)); err != nil || !slices.Equal(again, keys) {
			t.Errorf("%q is read as %q, and then as %q, %v", text, keys, again, err)
		}
	})
}

// TestKeys: a view of some keys has no others, whatever else selects.
func TestKeys(t *testing.T) {
	of := func(p Params) *Definition {
		t.Helper()
		d, err := Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := of(Params{Keys: []string{"b,a", `"c,d"`}})
	for key, want := range map[string]bool{"a": true, "b": true, "c,d": true, "c": false, "": false, "ab": false} {
		in, err := d.Matches(stream.Resource{Key: key, Value: []byte("{}")})
		if in != want || err != nil || d.Allows(key) != want {
			t.Errorf("%q: %t, %v, and it is allowed: %t", key, in, err, d.Allows(key))
		}
	}
	if d.IsWhole() || !d.Indexed() || d.Bytes() < 100 {
		t.Errorf("whole: %t, indexed: %t, %d bytes", d.IsWhole(), d.Indexed(), d.Bytes())
	}
	if same := of(Params{Keys: []string{`a,a,"b","c,d"`}}); same.ID() != d.ID() || of(d.Params()).ID() != d.ID() {
		t.Error("the order of keys, or how they are written, makes another definition")
	}
	ids := map[string]Params{}
	for _, p := range []Params{
		{Keys: []string{"a"}}, {Keys: []string{"a,b"}}, {Prefix: "a"}, {Keys: []string{"a"}, Prefix: "a"}, {Keys: []string{"a"}, Fields: []string{"a"}},
		{Keys: []string{"a"}, Order: "n", Limit: "1"}, {Order: "n", Limit: "1"}, {Filter: `key in ["a"]`},
	} {
		id := of(p).ID()
		if other, is := ids[id]; is {
			t.Errorf("%+v and %+v are the same", p, other)
		}
		ids[id] = p
	}
	narrow := of(Params{Keys: []string{"a/1,a/2,b"}, Prefix: "a/", Filter: `key in ["a/1", "b"] && value.n > 1`})
	for key, want := range map[string]bool{"a/1": true, "a/2": false, "b": false} {
		if in, _ := narrow.Matches(stream.Resource{Key: key, Value: []byte(`{"n":2}`)}); in != want {
			t.Errorf("%q: %t, want %t", key, in, want)
		}
	}
	var most []string
	for i := range MaxKeys {
		most = append(most, fmt.Sprint("k", i))
	}
	if _, err := Parse(Params{Keys: []string{FormatKeys(most), "k0"}}); err != nil {
		t.Errorf("%d keys: %v", MaxKeys, err)
	}
	if _, err := Parse(Params{Keys: []string{FormatKeys(most), "x"}}); err == nil {
		t.Error("one key more is not refused")
	}
}

// TestIndexByKeys: an index finds a view by each of its keys.
func TestIndexByKeys(t *testing.T) {
	d, err := Parse(Params{Keys: []string{"a,b"}, Prefix: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var x Index[string]
	x.Add("d", d)
	for key, want := range map[string]bool{"a": true, "b": false, "c": false} {
		found := false
		x.Candidates(Change{New: &stream.Resource{Key: key, Value: []byte("1")}}, func(c Candidate[string]) {
			in, _ := c.After()
			found = found || in
		})
		if found != want {
			t.Errorf("%q: found %t, want %t", key, found, want)
		}
	}
	if x.Remove("d"); x.Len() != 0 || len(x.keys) != 0 {
		t.Errorf("%d keys are left", len(x.keys))
	}
}
