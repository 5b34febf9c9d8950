package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/randomjson"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// naive evaluates parameters by plain CEL over values that encoding/json decoded.
type naive struct {
	params  Params
	program cel.Program
	reads   []document.Path
	labeled bool
	grants  []naive // of params.Grants
}

// plainCEL is the language with our variables, and nothing else set.
func plainCEL(t testing.TB) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(
		cel.Variable("key", cel.StringType), cel.Variable("value", cel.DynType),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)), cel.Variable("revision", cel.IntType),
	)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// namesLabels finds the variable, and no member of that name.
var namesLabels = regexp.MustCompile(`(^|[^.])labels`)

func newNaive(t rapid.TB, env *cel.Env, p Params, d *Definition) naive {
	t.Helper()
	n := naive{params: p, reads: d.reads, labeled: p.Labels != "" || namesLabels.MatchString(p.Filter), grants: newNaiveGrants(t, env, p)}
	if p.Filter == "" {
		return n
	}
	ast, issues := env.Compile(p.Filter)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", p.Filter, issues.Err())
	}
	var err error
	if n.program, err = env.Program(ast); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n naive) matches(r stream.Resource) bool {
	r, seen := n.see(r)
	if !seen {
		return false
	}
	if !strings.HasPrefix(r.Key, n.params.Prefix) {
		return false
	}
	activation := map[string]any{"key": r.Key, "revision": int64(min(r.Revision, math.MaxInt64))}
	var whole any
	var repeats []document.Path
	if r.Encoding == "" {
		whole = decodeAll(r.Value, &repeats)
		activation["value"] = whole
	}
	at := document.Path{"labels"}
	if n.params.LabelsAt != "" {
		at, _ = document.Parse(n.params.LabelsAt)
	}
	reads := n.reads
	if n.labeled {
		reads = append(slices.Clone(reads), at)
	}
	for _, p := range reads {
		for _, q := range repeats {
			if n := min(len(p), len(q)); slices.Equal(p[:n], q[:n]) {
				return false
			}
		}
	}
	found := stringsAt(whole, at)
	activation["labels"] = found
	selector, _ := labels.Parse(n.params.Labels)
	if !selector.Matches(labels.Set(found)) {
		return false
	}
	if n.program == nil {
		return true
	}
	result, _, err := n.program.Eval(activation)
	return err == nil && result.Value() == true
}

// stringsAt returns the strings in an object.
func stringsAt(v any, at document.Path) map[string]string {
	for _, name := range at {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	out := map[string]string{}
	o, _ := v.(map[string]any)
	for name, v := range o {
		if text, ok := v.(string); ok {
			out[name] = text
		}
	}
	return out
}

// decodeAll reads a value, and the paths of members that are in their object twice.
func decodeAll(value []byte, repeats *[]document.Path) any {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	return decodeNext(d, nil, repeats)
}

func decodeNext(d *json.Decoder, at document.Path, repeats *[]document.Path) any {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch token := token.(type) {
	case json.Number:
		return parseNumber(string(token))
	case json.Delim:
		if token == '[' {
			array := []any{}
			for d.More() {
				array = append(array, decodeNext(d, append(slices.Clone(at), "an index, and no name"), repeats))
			}
			_, _ = d.Token()
			return array
		}
		object := map[string]any{}
		for d.More() {
			name, _ := d.Token()
			inner := append(slices.Clone(at), name.(string))
			if _, twice := object[name.(string)]; twice {
				*repeats = append(*repeats, inner)
			}
			object[name.(string)] = decodeNext(d, inner, repeats)
		}
		_, _ = d.Token()
		return object
	}
	return token
}

func parseNumber(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// expression is a filter that can be written in several ways.
type expression struct {
	operator string // "" for what text says; binary, or ! or ( for none
	text     string
	operands []expression
}

var places = []string{"value.a", "value.b", "value.c", "value.a.b", "value.labels.a", `value["x.y"]`, "value", `value["a"].c`, "value.a[0]", "labels.a", `labels["b"]`}

var constants = []string{
	`""`, `"a"`, `"b"`, `"1"`, `"eu-1"`, `"é"`, `"e\u0301"`, `"\u0000"`, `"😀"`, "null", "true", "false", "0", "-0.0", "1", "1.0", "1u", "100", "1e2", "1.5", "-1",
	"9007199254740992", "9007199254740993", "9007199254740993.0", "9223372036854775807", "-9223372036854775808", "18446744073709551615u", "9223372036854775808.0", "1e19",
}

var leaves = []string{
	`key == "a/1"`, `key in ["a/1", "b/2", ""]`, `key.startsWith("a/")`, `key.startsWith("")`, `key.endsWith("1")`, `key.matches("^[ab]/")`, "revision > 5", "revision == 7", "size(key) > 2",
	"has(value.a)", "has(value.a.b)", "has(labels.a)", `"a" in labels`, `"b" in value`, `value.a.startsWith("e")`, `value.b.contains("")`, `value.a.matches("^[a-e]")`, "size(value.a) == 1",
	"value.a.exists(x, x == 1)", `value.b.all(x, x != "a")`, "value.exists(x, x == null)", "value.a.filter(x, x.b == 1).size() > 0", "labels.all(l, labels[l] != 'a')", "value.a.exists_one(x, x == value.b)",
	"value.a == value.b", "value.a < value.b", "type(value.a) == string", "type(value.b) == int", "string(value.a) == '1'", "int(value.a) == 1", "-value.a == 1", "(-value.a).b == 1",
	"value.a + 1 == value.b", "value.a == [1, 2]", `value.a == {"b": 1}`, "value == null", "(value.a ? 1 : 2) == 1", "value.a", "!value.b", "true", "value[key] == 1", "dyn(value).a == 1",
	`b"\x00" == value.a`, `'it\'s' != value.a`, "value.a - (1 - value.b) == 0", "value.a - 1 - value.b == 0", "value.a / 2 * 3 > 1", "value.a / (2 * 3) > 1",
}

func drawExpression(t *rapid.T, depth int) expression {
	if depth > 0 && rapid.Bool().Draw(t, "inner") {
		switch operator := rapid.SampledFrom([]string{"&&", "&&", "&&", "||", "!", "?"}).Draw(t, "operator"); operator {
		case "!":
			return expression{operator: operator, operands: []expression{drawExpression(t, depth-1)}}
		case "?":
			return expression{operator: operator, operands: []expression{drawExpression(t, depth-1), drawExpression(t, depth-1), drawExpression(t, depth-1)}}
		default:
			return expression{operator: operator, operands: []expression{drawExpression(t, depth-1), drawExpression(t, depth-1)}}
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "odd") == 0 {
		return expression{text: rapid.SampledFrom(leaves).Draw(t, "leaf")}
	}
	place := often(t, []string{"value.a", "value.b", "labels.a"}, places, "place")
	few, of := []string{`"a"`, "1", "1.0"}, constants
	if strings.HasPrefix(place, "labels") {
		few, of = []string{`"b"`, `"a"`}, constants[:6]
	}
	c := often(t, few, of, "constant")
	switch operator := rapid.SampledFrom([]string{"==", "==", "==", "in", "!=", "<", "reversed"}).Draw(t, "comparison"); operator {
	case "in":
		return expression{text: fmt.Sprintf("%s in [%s, %s]", place, c, often(t, few, of, "second"))}
	case "reversed":
		return expression{text: c + " == " + place}
	case "<":
		if c == "null" {
			c = "1"
		}
		fallthrough
	default:
		return expression{text: place + " " + operator + " " + c}
	}
}

// write writes the expression in one of many ways.
func (e expression) write(t *rapid.T) string {
	var text string
	switch e.operator {
	case "":
		text = strings.ReplaceAll(e.text, " ", rapid.SampledFrom([]string{" ", "  ", "\n "}).Draw(t, "space"))
		if !strings.Contains(text, "'") && rapid.Bool().Draw(t, "quotes") {
			text = strings.ReplaceAll(text, `"`, `'`)
		}
		if text == e.text && !strings.ContainsAny(text, " .[") {
			return text
		}
		return "(" + text + ")"
	case "!":
		text = "!(" + e.operands[0].write(t) + ")"
	case "?":
		text = e.operands[0].write(t) + "?(" + e.operands[1].write(t) + "): (" + e.operands[2].write(t) + ")"
	default:
		text = e.operands[0].write(t) + e.operator + " " + e.operands[1].write(t)
	}
	return fmt.Sprintf(rapid.SampledFrom([]string{"(%s)", "( %s )", "((%s))"}).Draw(t, "parentheses"), text)
}

// often draws one of a few values that are easily met again, and now and then any.
func often(t *rapid.T, few, any []string, label string) string {
	if rapid.IntRange(0, 3).Draw(t, label+" odd") == 0 {
		few = any
	}
	return rapid.SampledFrom(few).Draw(t, label)
}

func drawParams(t *rapid.T) Params {
	p := Params{
		Prefix:   often(t, []string{"", "a/"}, []string{"a", "b/2", "\xff"}, "prefix"),
		Labels:   often(t, []string{"", "", "a=b"}, []string{"a in (a,b)", "a", "!a", "a!=b", "b=1,a", "a=,b notin (a,b)", "a>0", "a="}, "labels"),
		LabelsAt: often(t, []string{""}, []string{"a", "a.b", "labels"}, "labels at"),
	}
	if rapid.IntRange(0, 3).Draw(t, "filtered") > 0 {
		p.Filter = drawExpression(t, 2).write(t)
	}
	if rapid.Bool().Draw(t, "projected") {
		names := rapid.SliceOfN(rapid.SampledFrom(randomjson.Names), 1, 3)
		p.Fields = []string{document.Path(names.Draw(t, "field")).String(), document.Path(names.Draw(t, "field")).String()}
	}
	p.Grants = drawGrants(t)
	return p
}

func drawResource(t *rapid.T, key string) *stream.Resource {
	r := &stream.Resource{Key: key, Revision: rapid.SampledFrom([]uint64{1, 6, 7, math.MaxInt64, math.MaxUint64}).Draw(t, "revision")}
	switch rapid.IntRange(0, 9).Draw(t, "value") {
	case 0:
		r.Value, r.Encoding = []byte(`"AAEC"`), stream.Base64
	case 1, 2:
		r.Value = []byte(randomjson.Value(t))
	default:
		value := func(few ...string) string {
			return often(t, few, append([]string{`"eu-1"`, `"\ud800"`, "true", "null", "[1,2]", `{"b":1}`, `{"b":"a"}`}, randomjson.Numbers...), "member")
		}
		member := rapid.SampledFrom([]string{`"a":%s`, `"a":%s`, `"\u0061":%s`, `"a":%s,"a":1`}).Draw(t, "a")
		r.Value = fmt.Appendf(nil, `{`+member+`,"b":%s,"labels":{"a":%s,"b":%s}}`, value(`"a"`, "1", "1e0"), value(`"a"`, "1", "1.0"), value(`"b"`, `""`), value(`"a"`, `"1"`))
	}
	return r
}

func drawKey(t *rapid.T) string {
	return often(t, []string{"a/1"}, []string{"b/2", "a", "", "é/1", "\xff\xfe"}, "key")
}
