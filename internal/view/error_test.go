package view

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestErrors: what is wrong, where, and what would be right.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ parameter, text, want string }{
		{"filter", `vaule.x == 1`, `filter, column 1: there is no variable "vaule": did you mean "value"?`},
		{"filter", `key == "a" && team == "a"`, `filter, column 15: there is no variable "team": a member of the value is value.team, a label labels.team, and text is in quotes`},
		{"filter", "key == \"é\" &&\n  vaule.x == 1", `filter, line 2, column 3: there is no variable "vaule": did you mean "value"?`},
		{"filter", `value.a-b == 1`, `filter, column 9: there is no variable "b": a name with - in it is in brackets and quotes, as in value["a-b"]`},
		{"filter", `value.x = 1`, `filter, column 9: = is no operator: did you mean ==?`},
		{"filter", `value.x === 1`, `filter, column 11: === is no operator: did you mean ==?`},
		{"filter", `value.x <> 1`, `filter, column 10: <> is no operator: did you mean !=?`},
		{"filter", `value.x & value.y`, `filter, column 9: & is no operator: did you mean &&?`},
		{"filter", `value.x and value.y`, `filter, column 9: and is no operator: did you mean &&?`},
		{"filter", `not value.x`, `filter, column 1: not is no operator: did you mean !?`},
		{"filter", `key in ("a", "b")`, `filter, column 12: unexpected ,: a list is in brackets: ["a", "b"]`},
		{"filter", `key == "abc`, `filter, column 8: a quotation mark is never closed: want " at the end of the text`},
		{"filter", `value.x ==`, `filter, column 11: the filter ends too early`},
		{"filter", `  `, `filter, column 3: the filter is empty`},
		{"filter", `$x`, `filter, column 1: unexpected $`},
		{"filter", `key`, `filter, column 1: the filter gives a value of type string, want true or false: compare it with something, as in key == "a"`},
		{"filter", `key.startWith("a")`, `filter, column 5: there is no function "startWith": did you mean "startsWith"?`},
		{"filter", `value.tags.exist(t, t == "a")`, `filter, column 12: there is no function "exist": did you mean "exists"?`},
		{"filter", `startsWith("a")`, `want text on both sides, as in key.startsWith("a")`},
		{"filter", `key == 1`, `filter, column 5: == cannot be applied to (string, int): both sides must have the same type; text is in quotes, a number is not`},
		{"filter", `value.x.matches("(")`, "filter, column 17: the pattern is wrong: missing closing ): `(`"},
		{"filter", `key.matches(value.x)`, `filter, column 13: the pattern is not a constant: want it in quotes, as in key.matches("^a")`},
		{"filter", `matches(key, key)`, `the pattern is not a constant`},
		{"filter", `value.l.exists(key, key == 1)`, `the macro hides the variable "key": choose another name for the element`},
		{"filter", `value.l.exists(x, x.l.all(y, y == 1))`, `macros are nested`},
		{"filter", `timestamp(value.t).getHours("Europe/Berlin") == 1`, `want a constant like "UTC" or "+02:00"`},
		{"filter", `google.protobuf.Struct{} == value`, `messages cannot be made here`},
		{"filter", "key == \"\xff\"", `filter, column 9: the text is not UTF-8`},
		{"labels", `a:b`, `labels, column 1: "a:b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character: did you mean a=b?`},
		{"labels", `x=1,a="b"`, `names and values stand without quotes`},
		{"labels", `a=b && c=d`, `requirements have commas between them: a=x,b=y`},
		{"labels", `a=b,c in [x]`, `labels, column 5: found '[x]' expected: '(': values are in parentheses: a in (x,y)`},
		{"labels", `a=b,,c`, `labels, column 5: `},
		{"labels", `a>x`, `the value must be an integer`},
		{"fields", `a.b,c[0]`, `fields, column 6: there are no indices`},
		{"fields", ``, `fields, column 1: a name is missing at the end`},
		{"labels_at", `a,b`, `labels_at, column 2: there are several paths`},
	} {
		_, err := Parse(withParameter(c.parameter, c.text))
		var e *Error
		if !errors.As(err, &e) || e.Parameter != c.parameter || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q:\ngot  %v\nwant %s", c.parameter, c.text, err, c.want)
			continue
		}
		if e.Offset > len(c.text) || e.Line < 1 || e.Column < 1 {
			t.Errorf("%s %q: the place is %+v", c.parameter, c.text, e)
		}
	}
}

func withParameter(name, text string) Params {
	switch name {
	case "prefix":
		return Params{Prefix: text}
	case "labels":
		return Params{Labels: text}
	case "filter":
		return Params{Filter: text}
	case "fields":
		return Params{Fields: []string{text}}
	}
	return Params{LabelsAt: text}
}

// TestLimits: what is at the limit is allowed, and what is beyond it refused.
func TestLimits(t *testing.T) {
	names := func(n int, separator string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint("n", i)
		}
		return strings.Join(list, separator)
	}
	for _, c := range []struct {
		what, parameter string
		text            func(n int) string
		limit           int
		want            string
	}{
		{"MaxText of the prefix", "prefix", func(n int) string { return strings.Repeat("a", n) }, MaxText, "bytes long"},
		{"MaxText of the filter", "filter", func(n int) string { return `key == "` + strings.Repeat("a", n-9) + `"` }, MaxText, "bytes long"},
		{"MaxText of the canonical filter", "filter", func(n int) string { return `key=="` + strings.Repeat("a", n-9) + `"` }, MaxText, "spaces around operators"},
		{"MaxText of the selector", "labels", func(n int) string { return strings.Repeat(" ", n-1) + "a" }, MaxText, "bytes long"},
		{"MaxText of the fields", "fields", func(n int) string { return strings.Repeat("a", n) }, MaxText, "bytes long"},
		{"MaxText of the labels' path", "labels_at", func(n int) string { return strings.Repeat("a", n) }, MaxText, "bytes long"},
		{"MaxFields", "fields", func(n int) string { return names(n, ",") }, MaxFields, "there are 65 fields"},
		{"MaxNames", "fields", func(n int) string { return names(n, ".") }, MaxNames, "has 33 names"},
		{"MaxNames of the labels' path", "labels_at", func(n int) string { return names(n, ".") }, MaxNames, "has 33 names"},
		{"MaxRequirements", "labels", func(n int) string { return names(n, ",") }, MaxRequirements, "there are 33 requirements"},
	} {
		if _, err := Parse(withParameter(c.parameter, c.text(c.limit))); err != nil {
			t.Errorf("%s: at the limit: %v", c.what, err)
		}
		if _, err := Parse(withParameter(c.parameter, c.text(c.limit+1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: beyond the limit: got %v, want %q", c.what, err, c.want)
		}
	}
	if _, err := Parse(Params{Fields: []string{strings.Repeat("a", MaxText), "b"}}); err == nil || !strings.Contains(err.Error(), "bytes long in full") {
		t.Errorf("many long fields: got %v", err)
	}
}

// TestFilterLimits: as TestLimits, for what depends on how the filter is made.
func TestFilterLimits(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("-(", n) + "value.a" + strings.Repeat(")", n) + " == 1" }
	wide := func(n int) string { return "value.x in [" + strings.Repeat("1,", n-1) + "1]" }
	repeated := func(n int) string { return fmt.Sprintf(`key.matches("^(abcdefghi){%d}$")`, n) }
	for _, c := range []struct {
		what, good, bad, want string
	}{
		{"MaxFilterDepth", deep(MaxFilterDepth / 3), deep(MaxFilterDepth + 1), "nested more than"},
		{"MaxFilterNodes", wide(600), wide(MaxFilterNodes), "more than 1000 operands"},
		{"MaxPattern", repeated(50), repeated(MaxPattern / 8), "compiles to"},
		{"FilterEstimateLimit", `value.l.all(x, x.contains("abc"))`, `value.l.all(x, value.b.contains(x))`, "the filter could cost"},
	} {
		if _, err := Parse(Params{Filter: c.good}); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, err := Parse(Params{Filter: c.bad}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.want)
		}
	}
	quadratic := Params{Filter: `value.l.all(x, value.b.contains(x))`, ValueSize: 4 << 10}
	if _, err := Parse(quadratic); err != nil {
		t.Errorf("ValueSize: %v", err)
	}
}
