package predicate

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/randomjson"
	"pgregory.net/rapid"
)

const megabyte = 1 << 20

func compile(t testing.TB, text string) *Predicate {
	t.Helper()
	p, err := Compile(text, megabyte)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func input(t rapid.TB, value string) *Input {
	t.Helper()
	var in Input
	in.Set("k/1", 7)
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil && !strings.Contains(err.Error(), "number") {
		t.Fatal(err)
	}
	in.SetValue(v)
	in.SetLabels(map[string]string{"b": "2", "a": "1"})
	return &in
}

func TestUsage(t *testing.T) {
	for text, want := range map[string]Usage{
		`key == "a"`:                                {},
		`value.a.b == 1 && value.c > 2`:             {Values: []document.Path{{"a", "b"}, {"c"}}},
		`value.a.b == 1 && has(value.a)`:            {Values: []document.Path{{"a"}}},
		`value["x.y"].z == 1`:                       {Values: []document.Path{{"x.y", "z"}}},
		`value.a[0].b == 1`:                         {Values: []document.Path{{"a"}}},
		`value[key] == value.a`:                     {Values: []document.Path{nil}},
		`value.a[value.b] == 1`:                     {Values: []document.Path{{"a"}, {"b"}}},
		`value.l.exists(x, x.a == value.b)`:         {Values: []document.Path{{"b"}, {"l"}}},
		`[value.a, {"x": value.b}] == [1]`:          {Values: []document.Path{{"a"}, {"b"}}},
		`value.a.startsWith(value.b)`:               {Values: []document.Path{{"a"}, {"b"}}},
		`dyn(value).a == 1`:                         {Values: []document.Path{nil}},
		`labels.a == "b"`:                           {Labels: true},
		`labels.exists(l, l == "value")`:            {Labels: true},
		`(value.a ? value.b : value.c).d == labels`: {Values: []document.Path{{"a"}, {"b"}, {"c"}}, Labels: true},
	} {
		if got := compile(t, text).Usage(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

func TestTerms(t *testing.T) {
	for text, want := range map[string][]Term{
		`value.a == "x"`:                             {{"value", document.Path{"a"}, []any{"x"}}},
		`"x" == value.a && value.b.c == 1`:           {{"value", document.Path{"a"}, []any{"x"}}, {"value", document.Path{"b", "c"}, []any{int64(1)}}},
		`value.a in [1, 2u, 3.0, null, true]`:        {{"value", document.Path{"a"}, []any{int64(1), uint64(2), 3.0, nil, true}}},
		`value.a in []`:                              {{"value", document.Path{"a"}, nil}},
		`value.a && key == "k"`:                      {{"value", document.Path{"a"}, []any{true}}, {"key", nil, []any{"k"}}},
		`labels.a == "x" && labels["b"] in ["y"]`:    {{"labels", document.Path{"a"}, []any{"x"}}, {"labels", document.Path{"b"}, []any{"y"}}},
		`value == 1`:                                 {{"value", nil, []any{int64(1)}}},
		`value.a == 1 || value.b == 2`:               nil,
		`!(value.a == 1)`:                            nil,
		`value.a != 1`:                               nil,
		`value.a == value.b`:                         nil,
		`value.a in [1, value.b]`:                    nil,
		`value.a == b"x"`:                            nil,
		`value.a[0] == 1`:                            nil,
		`has(value.a)`:                               nil,
		`value.l.exists(x, x == 1)`:                  nil,
		`revision == 1`:                              nil,
		`key.startsWith("a") && key.startsWith("b")`: nil,
	} {
		if got, _ := compile(t, text).Terms(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	if _, prefix := compile(t, `key.startsWith("a") && (key.startsWith("a/b") && value.x)`).Terms(); prefix != "a/b" {
		t.Errorf("got the prefix %q", prefix)
	}
}

// TestMapsAreInOrder: what depends on the order of a map's keys is the same each time.
func TestMapsAreInOrder(t *testing.T) {
	in := input(t, `{"m":{"d":1,"b":2,"a":3,"c":4,"e":[{"y":1,"x":2}]}}`)
	for _, text := range []string{
		`value.m.map(k, k) == ["a", "b", "c", "d", "e"]`,
		`value.m.filter(k, k != "a")[0] == "b"`,
		`labels.map(l, labels[l]) == ["1", "2"]`,
		`value.m.e[0].map(k, k) == ["x", "y"]`,
		`[value.m.e[0]].filter(m, m.x == 2)[0].map(k, k) == ["x", "y"]`,
		`value.m.e.map(m, m)[0].map(k, k) == ["x", "y"]`,
	} {
		p := compile(t, text)
		for range 20 {
			if ok, err := p.Holds(in); !ok {
				t.Fatalf("%s: got %t, %v", text, ok, err)
			}
		}
	}
	for _, text := range []string{`{"b": 1, "a": 2}.map(k, k) == ["a", "b"]`, `value.l.map(x, {x: 1})[0].exists(k, k == "a")`} {
		if _, err := Compile(text, megabyte); err == nil {
			t.Errorf("%s has no order, and is accepted", text)
		}
	}
}

func TestRevisionSaturates(t *testing.T) {
	var in Input
	in.Set("k", math.MaxUint64)
	if ok, err := compile(t, "revision == 9223372036854775807").Holds(&in); !ok {
		t.Errorf("got %v", err)
	}
}

// costly are filters of all kinds, for costs.
var costly = []string{
	`value.a == "x"`, `value.a == value.b`, `value == {"a": [1, 2]}`, `value.a < value.b`, `value.a in value.b`, `"a" in value`, `value.a + value.b == "ab"`,
	`value.a.contains(value.b)`, `value.a.startsWith(value.b)`, `value.a.matches("^(a|b)*c$")`, `value.a.size() > 2`, `size(value) > 1`, `has(value.a.b)`,
	`value.a.exists(x, x == 1)`, `value.a.all(x, x != "a" && x != value.b)`, `value.exists(x, value[x] == 1)`, `value.a.filter(x, x.b == 1).size() > 0`,
	`value.a.map(x, x.b).exists(y, y == 1)`, `value.a.exists_one(x, x.contains("a"))`, `value.a.all(x, x.contains(x))`, `value.a.all(x, x.b.matches("a+"))`, `value.a.exists(x, "a" in x.b)`,
	`value.a.exists(x, x + x == "aa")`, `value.a.exists(x, string(x) == "1")`, `labels.exists(l, labels[l] == key)`, `key.matches("^k")`, `[value.a, value.b].exists(x, x == 1)`,
	`value.a.map(x, [x, x]).size() == 2`, `(value.a ? value.b : value.c).exists(x, x == 1)`, `value.a[0].b == 1`, `value.a.exists(x, value.b[x] == "a")`, `bytes(value.a) == b"a"`, `value.a.all(x, x in [1, 2, 3])`,
}

// TestEstimateIsNotExceeded: an evaluation never costs more than what was estimated for a
// value of its size.
func TestEstimateIsNotExceeded(t *testing.T) {
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	large := []string{
		`{"a":[` + strings.Repeat(`"a",`, 500) + `"b"],"b":"a"}`, `{"a":"` + strings.Repeat("a", 2000) + `","b":"` + strings.Repeat("a", 2000) + `"}`,
		`{"a":["` + strings.Repeat("a", 2000) + `","x"],"b":"a"}`, `{"a":[` + strings.Repeat(`{"b":"a"},`, 200) + `1]}`, `{` + strings.Repeat(`"a":1,`, 1) + `"b":[` + strings.Repeat("1,", 1000) + `1]}`,
		`{"a":[{"b":"` + strings.Repeat("a", 2000) + `"},{"b":["a"]}]}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(costly).Draw(t, "filter")
		value := rapid.SampledFrom(large).Draw(t, "large")
		if rapid.Bool().Draw(t, "small") {
			value = randomjson.Value(t)
		}
		tree, err := check(env, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		program, err := env.Program(tree, cel.CostTrackerOptions(containsCost), cel.CostTracking(nil))
		if err != nil {
			t.Fatal(err)
		}
		steps, rest, err := estimate(env, tree, sizes{value: uint64(len(value)), variable: isVariable})
		if err != nil {
			t.Fatal(err)
		}
		_, details, _ := program.Eval(input(t, value))
		if cost := *details.ActualCost(); cost > steps+rest {
			t.Errorf("%s of %.50s… (%d bytes) costs %d, estimated %d and %d", text, value, len(value), cost, steps, rest)
		}
	})
}

// TestStepsAreLimited: each filter is admitted, and is given up in a value that is long
// enough, not in one of a thousand elements.
func TestStepsAreLimited(t *testing.T) {
	list := func(n int) *Input { return input(t, `{"a":[`+strings.Repeat("1,", n-1)+`1],"b":[]}`) }
	for _, text := range costly {
		p := compile(t, text)
		if _, err := p.Holds(list(1000)); errors.Is(err, ErrCost) {
			t.Errorf("%s is given up in 1,000 elements", text)
		}
		if _, err := p.Holds(list(CostLimit)); errors.Is(err, ErrCost) && !p.macros {
			t.Errorf("%s has no macros, and is given up", text)
		}
	}
	for _, text := range []string{`value.a.all(x, x == 1)`, `value.a.map(x, x).size() == 3`, `value.a.filter(x, x == 2).size() == 0`, `value.a.exists_one(x, x == 2)`} {
		if _, err := compile(t, text).Holds(list(CostLimit)); !errors.Is(err, ErrCost) {
			t.Errorf("%s: got %v for %d elements", text, err, CostLimit)
		}
	}
}

// containsCost is what containsEstimate estimates.
var containsCost = interpreter.OverloadCostTracker(overloads.ContainsString, func(args []ref.Val, _ ref.Val) *uint64 {
	size := uint64(0)
	for _, arg := range args {
		if text, ok := arg.(types.String); ok {
			size += uint64(text.Size().(types.Int))
		}
	}
	cost := (size + 9) / 10
	return &cost
})

// TestPatternsAreMeasured: a pattern that another function of cel-go panics at.
func TestPatternsAreMeasured(t *testing.T) {
	for pattern, fits := range map[string]bool{"a{2}": true, "^(ab?){1,50}$": true, "(a{50}){50}": false, "a{1001}": false, "a{999}": false, `\pL+`: true, "(?i)straße": true} {
		_, err := Compile("key.matches(r'"+pattern+"')", megabyte)
		if (err == nil) != fits {
			t.Errorf("%s: got %v", pattern, err)
		}
	}
}

// TestErrorsAreMistakes: whatever is wrong has a place.
func TestErrorsAreMistakes(t *testing.T) {
	for _, text := range slices.Concat([]string{"", "(", "key", "1e999 == value", "has(value)", "if", "a.b", "x()"}, []string{`value.a == "` + "\x00" + `" +`}) {
		_, err := Compile(text, megabyte)
		var m *document.Mistake
		if !errors.As(err, &m) || m.Problem == "" || m.Offset < 0 || m.Offset > len(text) {
			t.Errorf("%q: got %#v", text, err)
		}
	}
}

// FuzzCompile: what is accepted is accepted in its canonical form, as the same.
func FuzzCompile(f *testing.F) {
	for _, text := range costly {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2<<10 {
			return
		}
		p, err := Compile(text, megabyte)
		if err != nil {
			if strings.Contains(err.Error(), "canonical form") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := Compile(p.String(), megabyte)
		if err != nil || again.String() != p.String() {
			t.Errorf("%q is printed as %q, which is %v, %v", text, p, again, err)
		}
		for _, value := range []string{`{"a":[1,"x",{"b":null}],"b":1.5}`, `1`} {
			_, _ = p.Holds(input(t, value))
		}
	})
}
