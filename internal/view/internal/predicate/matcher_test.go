package predicate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/randomjson"
	"pgregory.net/rapid"
)

// What needs no program, with @ for something in a resource and # for a constant.
var (
	compared = []string{"@ == #", "@ != #", "# == @", "# != @", "@ in [#]", "@ in [null, #, 1u, true]", "@ in []"}
	inOrder  = []string{"@ < #", "@ <= #", "@ > #", "@ >= #", "# < @", "# <= @", "# > @", "# >= @"}
	searched = []string{"@.startsWith(#)", "@.endsWith(#)", "@.contains(#)", `@.matches("^a|1$")`}
	macros   = []string{"value.exists(@, #)", "value.a.exists(@, #)", "value.l.all(@, #)", "value.l.exists_one(@, #)", "value.a.all(@, #)", "value.o.exists_one(@, #)"}
	inMacros = []string{"x", "x.a", "x.a.b", "value[x]", "value.a[x]", "value.o[x].a", `value.o[x]["b"]`, "value.l[x]", "x[x]", "value.b"}
	present  = []string{"has(value.a)", "has(value.a.b)", `has(value["a"].c)`, "has(value.labels.a)", "has(labels.a)", "has(labels.c)"}
)

var numbers = []string{
	"0", "-0.0", "1", "1.0", "1u", "100", "1e2", "1.5", "-1", "-1.0", "5e-324",
	"9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740993u", "9223372036854775807", "-9223372036854775808",
	"9223372036854775807.0", "-9223372036854775808.0", "9223372036854775808u", "18446744073709551615u", "18446744073709551615.0", "1e19", "-1e19",
}

var texts = []string{`""`, `"a"`, `"b"`, `"1"`, `"true"`, `"eu-1"`, `"e"`, `"é"`, `"e\u0301"`, `"\u0000"`, `"😀"`}

var members = []string{"value.a", "value.b", "value.a.b", "value.labels.a", `value["x.y"]`, "value", `value["a"].c`, "value.a.b.c"}

// drawMatched draws an expression that needs no program.
func drawMatched(t *rapid.T, depth int) string {
	if depth > 0 && rapid.Bool().Draw(t, "inner") {
		switch operator := rapid.SampledFrom([]string{" && ", " || ", "!"}).Draw(t, "operator"); operator {
		case "!":
			return "!(" + drawMatched(t, depth-1) + ")"
		default:
			return "(" + drawMatched(t, depth-1) + operator + drawMatched(t, depth-1) + ")"
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "macro") > 0 {
		return drawCondition(t, members)
	}
	body := drawCondition(t, inMacros)
	if rapid.Bool().Draw(t, "joined") {
		body = rapid.SampledFrom([]string{"!(" + body + ")", body + " && has(x.a)", body + " || has(value[x].a)"}).Draw(t, "body") + " || " + drawCondition(t, inMacros)
	}
	return strings.NewReplacer("@", "x", "#", body).Replace(rapid.SampledFrom(macros).Draw(t, "over"))
}

// drawCondition draws one about one of some places, or about anything else.
func drawCondition(t *rapid.T, places []string) string {
	one := func(of ...[]string) string { return rapid.SampledFrom(slices.Concat(of...)).Draw(t, "of") }
	condition := func(form, place, constant string) string {
		return strings.NewReplacer("@", place, "#", constant).Replace(form)
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return one(present)
	case 1:
		return one(places)
	case 2:
		return condition(one(compared, inOrder), "revision", one([]string{"7", "8", "-1"}))
	case 3:
		return condition(one(compared, inOrder, searched), one([]string{"key", "labels.a", `labels["b"]`, "labels.c"}), one(texts))
	case 4, 5:
		return condition(one(searched), one(places), one(texts))
	case 6, 7:
		return condition(one(inOrder), one(places), one(numbers, texts))
	}
	return condition(one(compared), one(places), one([]string{"null", "true", "false"}, numbers, texts))
}

// drawInput draws a resource, read as it is for a definition, often with what the
// expressions name.
func drawInput(t *rapid.T) *Input {
	var in Input
	in.Set(rapid.SampledFrom([]string{"a", "a/1", "", "é", "\xff"}).Draw(t, "key"), rapid.SampledFrom([]uint64{7, 8, math.MaxInt64, math.MaxUint64}).Draw(t, "revision"))
	if rapid.IntRange(0, 9).Draw(t, "labeled") > 0 {
		in.SetLabels(map[string]string{"a": rapid.SampledFrom(randomjson.Texts).Draw(t, "label"), "b": "1"})
	}
	var text string
	switch rapid.IntRange(0, 5).Draw(t, "value") {
	case 0:
		return &in
	case 1, 2:
		text = randomjson.Value(t)
	default:
		a, b := randomjson.Value(t), rapid.SampledFrom(randomjson.Numbers).Draw(t, "b")
		l := randomjson.Value(t)
		if rapid.Bool().Draw(t, "list") {
			l = rapid.SampledFrom([]string{`[0,1.0,2]`, `["a","b"]`, `[{"a":1},{"a":{"b":"a"}}]`, `[-0.0,1e400,18446744073709551615]`, `[null,[]]`, `[1.5,-1]`, `[true,false]`}).Draw(t, "l")
		}
		text = fmt.Sprintf(`{"a":%s,"b":%s,"x.y":%s,"labels":{"a":%s},"l":%s,"o":{"a":{"a":%[2]s},"b":{"a":1,"b":"a"}}}`, a, b, randomjson.Value(t), rapid.SampledFrom(randomjson.Numbers).Draw(t, "inner"), l)
		if rapid.Bool().Draw(t, "nested") {
			text = fmt.Sprintf(`{"a":{"b":%s,"c":"a"},"b":"%s"}`, b, "eu-1")
		}
	}
	in.SetValue(read(t, text))
	return &in
}

// read reads a value as it is read for a definition.
func read(t rapid.TB, text string) any {
	t.Helper()
	var paths document.Paths
	paths.Add(document.Path{})
	var d document.Document
	if d.Read([]byte(text), &paths) != nil {
		t.Fatalf("%s is no JSON", text)
	}
	return d.Root
}

// programOf returns the predicate as cel-go decides it.
func programOf(t rapid.TB, p *Predicate) *Predicate {
	t.Helper()
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := check(env, p.String())
	if err != nil {
		t.Fatal(err)
	}
	program, err := env.Program(tree, metered)
	if err != nil {
		t.Fatal(err)
	}
	return &Predicate{program: program, macros: p.macros}
}

// agree compares the matcher with the program, and returns what they say.
func agree(t rapid.TB, matcher, program *Predicate, in *Input) string {
	t.Helper()
	if matcher.matcher == nil || matcher.program != nil && !matcher.macros {
		t.Fatalf("%s needs a program", matcher)
	}
	got, gotErr := matcher.Holds(in)
	want, wantErr := program.Holds(in)
	if got != want || gotErr != wantErr {
		t.Fatalf("%s of %#v:\nthe matcher says %t, %v\nthe program     %t, %v", matcher, *in, got, gotErr, want, wantErr)
	}
	return fmt.Sprint(got, gotErr)
}

// TestMatcherIsTheProgram: a matcher says of each resource what cel-go says.
func TestMatcherIsTheProgram(t *testing.T) {
	said := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		p, err := Compile(drawMatched(t, 3), megabyte)
		if err != nil {
			t.Skip(err) // a comparison of types that cannot be compared
		}
		program := programOf(t, p)
		for range 8 {
			said[agree(t, p, program, drawInput(t))]++
		}
	})
	if len(said) != 3 {
		t.Errorf("the results were %v, want true, false and none", said)
	}
}

// TestMatcherComparesLikeTheProgram: that holds for each comparison of each number, and of
// what is no number.
func TestMatcherComparesLikeTheProgram(t *testing.T) {
	var inputs []*Input
	for _, text := range slices.Concat(randomjson.Numbers, []string{`""`, `"1"`, `"a"`, `"b"`, "null", "true", "[]", "{}"}) {
		in := &Input{}
		in.SetValue(read(t, text))
		inputs = append(inputs, in)
	}
	for _, form := range slices.Concat(compared, inOrder) {
		for _, constant := range slices.Concat(numbers, []string{`"a"`}) {
			p := compile(t, strings.NewReplacer("@", "value", "#", constant).Replace(form))
			program := programOf(t, p)
			for _, in := range inputs {
				agree(t, p, program, in)
			}
		}
	}
}

// TestMacrosLikeTheProgram: that holds for each macro over each kind of value, with each
// kind of element as a name or an index.
func TestMacrosLikeTheProgram(t *testing.T) {
	values := []string{
		`[]`, `{}`, `1`, `"a"`, `null`, `[0,1]`, `[1,0,1]`, `[1.5]`, `[1.0,-0.0]`, `[-1]`, `[5]`, `[18446744073709551615]`, `[1e400]`, `["a"]`, `["a","b"]`, `["","c"]`, `[null]`, `[true]`,
		`{"a":1}`, `{"a":1,"b":2}`, `{"b":{"a":true}}`, `[{"a":true},{"a":false}]`, `[{"a":1},{"b":1}]`, `[[1]]`,
	}
	var inputs []*Input
	for _, over := range values {
		for _, by := range []string{`[true,false]`, `[{"a":true},1]`, `{"a":true,"b":false}`, `{"a":{"a":true}}`, `{"":true}`, `1`} {
			in := &Input{}
			in.SetValue(read(t, fmt.Sprintf(`{"l":%s,"m":%s,"o":{"m":%[2]s}}`, over, by)))
			inputs = append(inputs, in)
		}
	}
	for _, macro := range []string{"exists", "all", "exists_one"} {
		for _, body := range []string{`x`, `x == 1`, `x != "a"`, `x > 0`, `x.a`, `has(x.a)`, `value.m[x]`, `value["o"].m[x]`, `value.o.m[x].a`, `has(value.m[x].a)`, `value.l[x] == 1`, `x == 1 || value.m[x]`, `x == "a" && !value.m[x]`} {
			p := compile(t, fmt.Sprintf("value.l.%s(x, %s)", macro, body))
			program := programOf(t, p)
			for _, in := range inputs {
				agree(t, p, program, in)
			}
		}
	}
}

// TestStepsOfMatcher: what takes as many steps as its program may take is left to that, which
// gives it up.
func TestStepsOfMatcher(t *testing.T) {
	p := compile(t, `value.a.exists(x, x == 1) || value.b.all(x, x != "a")`)
	list := func(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
	for _, c := range []struct {
		a, b int
		want error
	}{{int(p.steps) - 2, 1, nil}, {int(p.steps) - 1, 1, ErrCost}, {1, int(p.steps), ErrCost}, {int(p.steps) * 2, 1, ErrCost}} {
		var in Input
		in.SetValue(read(t, fmt.Sprintf(`{"a":%s,"b":%s}`, list(c.a), list(c.b))))
		if _, decided := p.match(&in); decided != (c.want == nil) {
			t.Errorf("%d and %d of %d steps: the matcher decides: %t", c.a, c.b, int(p.steps), decided)
		}
		if got, err := p.Holds(&in); err != c.want || got != (c.want == nil) {
			t.Errorf("%d and %d of %d steps: got %t, %v, want %v", c.a, c.b, int(p.steps), got, err, c.want)
		}
	}
}

// TestProgramWhereNeeded: what a matcher does not know has a program.
func TestProgramWhereNeeded(t *testing.T) {
	for _, text := range []string{
		`value.a == value.b`, `value.a[0] == 1`, `size(value.a) == 1`, `value.a == [1]`, `value.a == b"x"`, `value.a < true`, `"a" in labels`,
		`value.a.startsWith(value.b)`, `value.a.exists(x, x + 1 == 1)`, `value.a.map(x, x) == [1]`, `value.a.exists(x, value.b[x][x] == 1)`, `labels.exists(x, x == "a")`, `value.a.filter(x, x == 1) == [1]`, `[1].exists(x, x == value.a)`, `value.a == 1 || value.b + 1 == 2`, `!(value.a ? true : false)`, `has(value.a) == true`,
		`dyn(value).a == 1`, `labels == {"a": "b"}`, `true`, `value.a in value.b`, `value.a in [value.b]`, `-value.a == 1`,
	} {
		if p := compile(t, text); p.program == nil || p.matcher != nil {
			t.Errorf("%s has no program", text)
		}
	}
}
