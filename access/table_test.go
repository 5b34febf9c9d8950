package access

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func hashText(token string) string {
	h := HashOfToken(token)
	return "sha256:" + hex.EncodeToString(h[:])
}

func TestParse(t *testing.T) {
	file := "\ufeff# who may ask\r\n\n  \t\n  # indented\nci " + hashText("one") + "\r\nann\t" + hashText("two") + "   staff,on-call\nbö " + strings.ToUpper(hashText("three")[7:])
	file = strings.Replace(file, "bö ", "bö sha256:", 1) + " a"
	table, err := ParseTokens([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]Principal{
		"one": {Name: "ci"}, "two": {Name: "ann", Groups: []string{"staff", "on-call"}}, "three": {Name: "bö", Groups: []string{"a"}},
	} {
		got := table.Lookup(HashOfToken(token))
		if got == nil || got.Mechanism != Token || got.Name != want.Name || !slices.Equal(got.Groups, want.Groups) {
			t.Errorf("%s: %+v, want %+v", token, got, want)
		}
		if hashes := table.Hashes(want.Name); !slices.Equal(hashes, []TokenHash{HashOfToken(token)}) {
			t.Errorf("%s: %d hashes", want.Name, len(hashes))
		}
	}
	if hashes := table.Hashes("nobody"); hashes != nil {
		t.Errorf("nobody has %d tokens", len(hashes))
	}
	if table.Len() != 3 || table.Lookup(HashOfToken("four")) != nil || table.Lookup(TokenHash{}) != nil {
		t.Errorf("%d tokens", table.Len())
	}
}

func TestNoTableHasNoTokens(t *testing.T) {
	var none *TokenTable
	if none.Hashes("a") != nil || none.Lookup(HashOfToken("a")) != nil || none.Len() != 0 {
		t.Error("no table has a token")
	}
}

func TestMistakes(t *testing.T) {
	one, two := hashText("one"), hashText("two")
	for text, want := range map[string]string{
		"ci":                                            "1:3: the hash is missing; want name sha256:",
		"\n  ci  hunter2":                               "2:7: want sha256: and the hash of the token, never the token itself",
		"ci sha256:hunter2":                             "1:11: want 64 hexadecimal digits",
		"ci " + one[:len(one)-2]:                        "1:11: want 64 hexadecimal digits",
		"ci SHA256:" + one[7:]:                          "1:4: want sha256:",
		"ci " + hashText(""):                            "1:4: this is the hash of an empty text",
		one + " ci":                                     "1:73: want sha256:",
		one + " " + two:                                 "1:1: the name is missing",
		"ci " + one + "\nann " + one:                    "2:5: line 1 has the same hash",
		"ci " + one + " a\n# x\nci " + two:              `3:1: "ci" has other groups on line 1: want the same`,
		"ci " + one + " expires=tomorrow":               "1:84: want a time such as 2027",
		"ci " + one + " expires=2027-01-31":             "1:84: want a time such as 2027",
		"ci " + one + " expires=2027-01-31T00:00:00Z a": "1:105: want nothing after the groups",
		many("ci", 17):                                  `17:1: "ci" has 16 tokens already`,
		"ci " + one + " a b":                            "1:78: want nothing after the groups",
		"bö " + one + " ä,,b":                           "1:78: a group is missing here",
		"ci " + one + " a,":                             "1:78: a group is missing here",
		"ci " + one + " a,b,a":                          `1:80: group "a" is given twice`,
		"c\xff " + one:                                  "1:1: the line is not UTF-8",
		strings.Repeat("a", 257) + " " + one:            "1:1: the name has 257 bytes",
		"ci " + one + " " + numbers(257):                "want at most 256 groups",
		strings.Repeat("#", MaxFileBytes+1):             "at most 16777216 are read",
	} {
		_, err := ParseTokens([]byte(text))
		var mistake *TokenMistake
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.90q: %v, want %s", text, err, want)
		}
	}
}

// many returns lines of one name, each with a token of its own.
func many(name string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = name + " " + hashText(fmt.Sprint(i))
	}
	return strings.Join(all, "\n")
}

// TestSeveralTokens: a name has several tokens while one of them replaces another.
func TestSeveralTokens(t *testing.T) {
	table, err := ParseTokens([]byte("ci " + hashText("old") + " robots expires=2027-01-31T12:00:00+01:00\nann " + hashText("ann") + " expires=2027-01-31T11:00:00Z\nci " + hashText("new") + " robots\n"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2027, 1, 31, 11, 0, 0, 0, time.UTC)
	for token, want := range map[string]Principal{
		"old": {Name: "ci", Groups: []string{"robots"}, Expires: at}, "new": {Name: "ci", Groups: []string{"robots"}}, "ann": {Name: "ann", Expires: at},
	} {
		got := table.Lookup(HashOfToken(token))
		if got == nil || got.Name != want.Name || !slices.Equal(got.Groups, want.Groups) || !got.Expires.Equal(want.Expires) {
			t.Errorf("%s: %+v, want %+v", token, got, want)
		}
	}
	if hashes := table.Hashes("ci"); !slices.Equal(hashes, []TokenHash{HashOfToken("old"), HashOfToken("new")}) || table.Len() != 3 {
		t.Errorf("ci has %d tokens of %d", len(hashes), table.Len())
	}
}

func numbers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return strings.Join(all, ",")
}

func TestNew(t *testing.T) {
	seen := map[string]bool{}
	for _, groups := range [][]string{nil, {"a"}, {"a", "b"}} {
		token, line, err := NewToken("ci", groups)
		if err != nil || seen[token] || len(token) < 43 || strings.Contains(line, token) {
			t.Fatalf("%q, %q, %v", token, line, err)
		}
		seen[token] = true
		table, err := ParseTokens([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if p := table.Lookup(HashOfToken(token)); p == nil || p.Name != "ci" || !slices.Equal(p.Groups, groups) {
			t.Errorf("%q is of %+v", line, p)
		}
	}
	for name, groups := range map[string][]string{"": nil, "a b": nil, "#a": nil, "a\nb": nil, "sha256:a": nil, "a": {"b,c"}, "b": {""}, "c": {"d e"}, "d": {"e", "e"}, "\xff": nil} {
		if token, line, err := NewToken(name, groups); err == nil {
			t.Errorf("%q with groups %q: %q, %q", name, groups, token, line)
		}
	}
}

// FuzzParse looks for files that make the parser panic, errors without a place, and
// tokens whose name or group cannot be written.
func FuzzParse(f *testing.F) {
	f.Add("ci " + hashText("one") + " a,b\n# x\n\nann " + hashText("two"))
	f.Add("ci hunter2")
	f.Add("\ufeff\r\n\t")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ParseTokens([]byte(text))
		if err != nil {
			var mistake *TokenMistake
			if !errors.As(err, &mistake) || mistake.Line < 1 || mistake.Column < 1 || mistake.Line > strings.Count(text, "\n")+1 {
				t.Errorf("no place in the file: %v", err)
			}
			return
		}
		for hash, p := range table.byHash {
			if p.Name == "" || slices.Contains(p.Groups, "") || !slices.Contains(table.byName[p.Name], hash) {
				t.Errorf("%+v", p)
			}
		}
	})
}
