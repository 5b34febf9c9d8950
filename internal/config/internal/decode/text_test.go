package decode

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseText(t *testing.T) {
	for text, want := range map[string]TemplateText{
		"":                    {{}},
		"a":                   {{Literal: "a"}},
		"{x}":                 {{}, {Param: "x"}, {}},
		"a{x}b{y_1}c":         {{Literal: "a"}, {Param: "x"}, {Literal: "b"}, {Param: "y_1"}, {Literal: "c"}},
		"{x}{x}":              {{}, {Param: "x"}, {}, {Param: "x"}, {}},
		"${X}{x}$${x}":        {{Literal: "${X}"}, {Param: "x"}, {Literal: "$${x}"}},
		"{{x}}":               {{Literal: "{"}, {Param: "x"}, {Literal: "}"}},
		"{X}{}{ x}{1}{a-b}{x": {{Literal: "{X}{}{ x}{1}{a-b}{x"}},
	} {
		if got := ParseText(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// FuzzParseText checks that no part of a text is lost.
func FuzzParseText(f *testing.F) {
	f.Add("a{x}b${Y}{")
	f.Fuzz(func(t *testing.T, text string) {
		var whole strings.Builder
		for _, p := range ParseText(text) {
			whole.WriteString(p.Literal)
			if p.Param != "" {
				whole.WriteString("{" + p.Param + "}")
			}
		}
		if whole.String() != text {
			t.Errorf("%q became %q", text, whole.String())
		}
	})
}

// FuzzParseName checks that names are made of what the text says.
func FuzzParseName(f *testing.F) {
	for _, name := range []string{"orders-{region}", "{a}-{b}", "{a}{b}", "{a", "a}", "{}", "a/{b}"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text, err := ParseName(name)
		if err != nil {
			return
		}
		values := map[string]string{}
		for _, param := range text.Params() {
			values[param] = "{" + param + "}"
		}
		if got := text.Render(values); got != name || len(values) != len(text.Params()) {
			t.Errorf("%q became %q", name, got)
		}
	})
}
