package document

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestParseList(t *testing.T) {
	for text, want := range map[string][]Path{
		`a`:                     {{"a"}},
		`a.b,c`:                 {{"a", "b"}, {"c"}},
		` a . b , c `:           {{"a", "b"}, {"c"}},
		`a."b.c".d`:             {{"a", "b.c", "d"}},
		`"a,b"`:                 {{"a,b"}},
		`a,b`:                   {{"a"}, {"b"}},
		`"","\u0000","\"\\"`:    {{""}, {"\x00"}, {`"\`}},
		`metadata/x-y:z._1`:     {{"metadata/x-y:z", "_1"}},
		`größe."e` + "\u0301\"": {{"größe", "e\u0301"}},
	} {
		if got, err := ParseList(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseListRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:           "missing at the end",
		`a,`:         "missing at the end",
		`,a`:         "missing before ,",
		`a..b`:       "missing before .",
		`a[0]`:       "there are no indices",
		`a["b.c/d"]`: `want a."b.c/d"`,
		`a.['b']`:    `want a."b"`,
		`a.b\.c`:     `double quotes: metadata.labels."app.kubernetes.io/name"`,
		`a b`:        "unexpected b",
		`'a'`:        `want double quotes`,
		`"a`:         "never closed",
		`"\q"`:       "no JSON string",
		`a"b"`:       `unexpected "`,
		"a\tb":       "unexpected",
		"a\xffb":     "not UTF-8",
		"\"\xff\"":   "no JSON string",
	} {
		if got, err := ParseList(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := Parse("a,b"); err == nil {
		t.Error("Parse takes several paths")
	}
}

func TestMinimal(t *testing.T) {
	got := Minimal([]Path{{"b"}, {"a", "b"}, {"a", "b", "c"}, {"a", "bc"}, {"b"}, {"a", "b"}})
	if want := []Path{{"a", "b"}, {"a", "bc"}, {"b"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStringIsRead: String of any path is read as that path.
func TestStringIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Path(rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "path"))
		for i := range p {
			p[i] = strings.ToValidUTF8(p[i], "")
		}
		got, err := Parse(p.String())
		if err != nil || !slices.Equal(got, p) {
			t.Errorf("%s: got %q, %v, want %q", p, got, err, p)
		}
	})
}

// FuzzParseList: what is read is printed so that it is read as the same.
func FuzzParseList(f *testing.F) {
	for _, seed := range []string{`a.b,c`, `"a,b"."\u0000"`, `a..b`, `"`, `a[0]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseList(text)
		if err != nil {
			return
		}
		texts := make([]string, len(list))
		for i, p := range list {
			texts[i] = p.String()
			if !utf8.ValidString(texts[i]) {
				t.Errorf("%q is printed as %q", text, texts[i])
			}
		}
		again, err := ParseList(strings.Join(texts, ","))
		if err != nil || !reflect.DeepEqual(again, list) {
			t.Errorf("%q is printed as %q, which is read as %q, %v", text, texts, again, err)
		}
	})
}
