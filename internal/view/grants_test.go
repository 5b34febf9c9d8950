package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/randomjson"
	"github.com/watchtide/watchtide/stream"
)

// drawGrants draws nil in half of the cases, so that definitions without grants stay
// common.
func drawGrants(t *rapid.T) []Grant {
	if rapid.Bool().Draw(t, "open") {
		return nil
	}
	all := []Grant{}
	for range rapid.IntRange(0, 3).Draw(t, "grants") {
		g := Grant{Filter: often(t, []string{"true", `value.a == "a"`, `labels.a == "b"`}, []string{"false", `key.startsWith("a/")`, `value.b == 1 && value.a != null`, "revision > 6", "value == null", `value.a == value.b`, "value"}, "grant")}
		if rapid.IntRange(0, 3).Draw(t, "some fields") > 0 {
			g.Fields = []string{often(t, []string{"a", "b", "labels"}, []string{"a.b", "labels.a", "nothing", "b,a"}, "granted field")}
		}
		if rapid.IntRange(0, 2).Draw(t, "some not") == 0 {
			g.Except = []string{often(t, []string{"a", "b", "labels", "b,a"}, []string{"a.b", "labels.a", "nothing", `"x.y"`, "a.b,labels"}, "left out")}
		}
		if _, err := Parse(Params{Grants: []Grant{g}}); err != nil {
			g.Except = nil // it is not below one of the fields
		}
		if rapid.IntRange(0, 2).Draw(t, "some namespaces") == 0 {
			g.Namespaces = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "a/b", "ab"}), 0, 3).Draw(t, "namespaces")
		}
		all = append(all, g)
	}
	return all
}

func newNaiveGrants(t rapid.TB, env *cel.Env, p Params) (all []naive) {
	t.Helper()
	for _, g := range p.Grants {
		of := Params{Filter: g.Filter, LabelsAt: p.LabelsAt, Fields: g.Fields}
		d, err := Parse(of)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newNaive(t, env, of, d))
	}
	return all
}

// see returns what the grants leave of a resource.
func (n naive) see(r stream.Resource) (stream.Resource, bool) {
	if n.params.Grants == nil {
		return r, true
	}
	var shown []shown
	seen := false
	for i, g := range n.grants {
		p := n.params.Grants[i]
		namespace, _, named := strings.Cut(r.Key, "/")
		if p.Namespaces != nil && (!named || !slices.Contains(p.Namespaces, namespace)) || !g.matches(r) {
			continue
		}
		one := newShown(p.Fields, p.Except)
		if len(one.fields)+len(one.except) == 0 {
			return r, true
		}
		seen = true
		shown = append(shown, one)
	}
	if !seen {
		return stream.Resource{}, false
	}
	kept := any(nil)
	if r.Encoding == "" {
		kept = keepShown(decodeOrdered(r.Value), shown)
	}
	r.Value, r.Encoding = encodeOrdered(kept), ""
	return r, true
}

// member keeps what encoding/json loses: the order of members, and those that are repeated.
type member struct {
	name  string
	value any
}

func decodeOrdered(value []byte) any {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	return decodeOrderedNext(d)
}

func decodeOrderedNext(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch token {
	case json.Delim('['):
		array := []any{}
		for d.More() {
			array = append(array, decodeOrderedNext(d))
		}
		_, _ = d.Token()
		return array
	case json.Delim('{'):
		object := []member{}
		for d.More() {
			name, _ := d.Token()
			object = append(object, member{name.(string), decodeOrderedNext(d)})
		}
		_, _ = d.Token()
		return object
	}
	return token
}

// shown is what a grant shows of values.
type shown struct{ fields, except []document.Path }

func newShown(fields, except []string) (s shown) {
	for _, text := range fields {
		some, _ := document.ParseList(text)
		s.fields = append(s.fields, some...)
	}
	for _, text := range except {
		some, _ := document.ParseList(text)
		s.except = append(s.except, some...)
	}
	return s
}

// at reports whether the grant shows what is at a place.
func (s shown) at(at document.Path) bool {
	return (len(s.fields) == 0 || slices.ContainsFunc(s.fields, at.Below)) && !slices.ContainsFunc(s.except, at.Below)
}

// leads reports whether a field is below a place.
func (s shown) leads(at document.Path) bool {
	return slices.ContainsFunc(s.fields, func(field document.Path) bool { return len(field) > len(at) && field.Below(at) })
}

// keepShown is keepNaively for the root: of a value that is neither an object nor an array
// nothing is left.
func keepShown(v any, by []shown) any {
	switch v.(type) {
	case []member, []any:
		kept, _ := keepNaively(v, nil, by)
		return kept
	}
	return nil
}

// keepNaively keeps what some grant shows, and the objects and arrays that lead there.
func keepNaively(v any, at document.Path, by []shown) (any, bool) {
	shows := slices.ContainsFunc(by, func(s shown) bool { return s.at(at) })
	if !shows && !slices.ContainsFunc(by, func(s shown) bool { return s.leads(at) }) {
		return nil, false
	}
	switch v := v.(type) {
	case []member:
		out := []member{}
		for _, m := range v {
			if inner, kept := keepNaively(m.value, append(slices.Clone(at), m.name), by); kept {
				out = append(out, member{m.name, inner})
			}
		}
		return out, true
	case []any:
		out := []any{}
		for _, e := range v {
			if inner, kept := keepNaively(e, at, by); kept {
				out = append(out, inner)
			}
		}
		return out, true
	}
	return v, shows
}

func encodeOrdered(v any) []byte {
	var parts []string
	switch v := v.(type) {
	case []member:
		for _, m := range v {
			name, _ := json.Marshal(m.name)
			parts = append(parts, string(name)+":"+string(encodeOrdered(m.value)))
		}
		return []byte("{" + strings.Join(parts, ",") + "}")
	case []any:
		for _, e := range v {
			parts = append(parts, string(encodeOrdered(e)))
		}
		return []byte("[" + strings.Join(parts, ",") + "]")
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// TestProjectShowsWhatGrantsLeave: what a naive evaluation of each grant lets be seen, and
// nothing of a resource that no grant lets be seen.
func TestProjectShowsWhatGrantsLeave(t *testing.T) {
	env := plainCEL(t)
	rapid.Check(t, func(t *rapid.T) {
		p := Params{Grants: drawGrants(t), LabelsAt: often(t, []string{""}, []string{"a"}, "labels at")}
		d, err := Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		r := *drawResource(t, drawKey(t))
		model := newNaive(t, env, p, d)
		want, seen := model.see(r)
		matches, _ := d.Matches(r)
		visibility, _ := d.Visibility(r)
		got, err := d.Project(r)
		if matches != seen || (visibility != Hidden) != seen || (err == nil) != seen {
			t.Fatalf("%+v: it matches %t, is %v and is projected with the error %v, want that it is seen %t", p, matches, visibility, err, seen)
		}
		if !seen {
			if !reflect.DeepEqual(got, stream.Resource{}) {
				t.Errorf("a hidden resource is projected to %+v", got)
			}
			return
		}
		if visibility == Whole {
			if !reflect.DeepEqual(got, r) {
				t.Errorf("a resource that is seen whole is projected to %+v", got)
			}
			return
		}
		if got.Key != r.Key || got.Revision != r.Revision || got.Encoding != "" || !reflect.DeepEqual(decodeOrdered(got.Value), decodeOrdered(want.Value)) {
			t.Errorf("%+v: %s is projected to %s, want %s", p, r.Value, got.Value, want.Value)
		}
	})
}

// secret is what no test below may ever see.
const secret = "Top-Secret-7f3a"

// TestHiddenFieldIsNoOracle: whatever a narrowing asks, its answer for two resources that
// differ only in what the grants hide is the same.
func TestHiddenFieldIsNoOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		p.Grants = []Grant{{Filter: `key != ""`, Fields: []string{"b"}}}
		if rapid.Bool().Draw(t, "all but") {
			p.Grants = []Grant{{Filter: `key != ""`, Except: []string{"a", "labels.a"}}}
		}
		d, err := Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		shown := often(t, []string{`"a"`, "1"}, randomjson.Numbers, "shown")
		resource := func(hidden string) stream.Resource {
			return stream.Resource{Key: "a/1", Revision: 7, Value: fmt.Appendf(nil, `{"a":%s,"b":%s,"labels":{"a":%[1]s}}`, hidden, shown)}
		}
		hide := func() string {
			return often(t, []string{`"a"`, "1", `"b"`}, []string{`{"b":1}`, `{"b":1,"b":1}`, "null", "[]", `"` + secret + `"`}, "hidden")
		}
		one, other := resource(hide()), resource(hide())
		matchesOne, errOne := d.Matches(one)
		matchesOther, errOther := d.Matches(other)
		if matchesOne != matchesOther || !errors.Is(errOne, errOther) {
			t.Errorf("%+v: %s gives %t, %v and %s gives %t, %v", p, one.Value, matchesOne, errOne, other.Value, matchesOther, errOther)
		}
		for _, r := range []stream.Resource{one, other} {
			if got, _ := d.Project(r); bytes.Contains(got.Value, []byte(secret)) {
				t.Errorf("%s is projected to %s", r.Value, got.Value)
			}
		}
	})
}

func TestGrantsVanish(t *testing.T) {
	plain := parse(t, Params{Filter: "value.n > 1", Fields: []string{"n"}})
	for _, g := range [][]Grant{
		nil, {{Filter: "true"}}, {{Filter: "(true)"}, {Filter: "value.a"}}, {{Filter: "true", Fields: []string{"a"}}, {Filter: "true"}},
		{{Filter: "true", Except: []string{"a"}}, {Filter: "true"}},
	} {
		d := parse(t, Params{Filter: "value.n>1", Fields: []string{"n"}, Grants: g})
		if d.ID() != plain.ID() || d.Restricts() || d.Params().Grants != nil {
			t.Errorf("%+v: the definition is %+v, want that of the narrowing", g, d.Params())
		}
	}
	if d := parse(t, Params{Grants: []Grant{{Filter: "true"}}}); !d.IsWhole() {
		t.Error("a grant of everything leaves something out")
	}
}

// TestGrantsAreCanonical: equal grants make equal definitions, and others do not.
func TestGrantsAreCanonical(t *testing.T) {
	a := []Grant{{Filter: "value.n>1", Fields: []string{"b,a"}}, {Filter: "key=='x'"}, {Filter: "value.n > 1", Fields: []string{"a.c"}}, {Filter: "false"}}
	b := []Grant{{Filter: `key == "x"`}, {Filter: "value.n > 1", Fields: []string{"a", "b"}}}
	one, other := parse(t, Params{Grants: a}), parse(t, Params{Grants: b})
	if one.ID() != other.ID() || !reflect.DeepEqual(one.Params(), other.Params()) || !reflect.DeepEqual(one.Params().Grants, b) {
		t.Errorf("got %+v and %+v", one.Params(), other.Params())
	}
	ids := map[string][]Grant{}
	for _, g := range [][]Grant{
		nil, {}, b, b[:1], b[1:], {{Filter: "value.n > 1"}}, {{Filter: "value.n > 1", Fields: []string{"a"}}}, {{Filter: "value.n > 1", Fields: []string{"a.b"}}},
		{{Filter: "true", Fields: []string{"a"}}}, {{Filter: "labels.a == 'b'"}},
		{{Filter: "true", Except: []string{"a"}}}, {{Filter: "true", Except: []string{"a", "b"}}}, {{Filter: "true", Fields: []string{"a"}, Except: []string{"a.b"}}},
		{{Filter: "true", Except: []string{"a"}}, {Filter: "true", Except: []string{"b"}}}, {{Filter: "true", Except: []string{"a"}}, {Filter: "true", Fields: []string{"b"}}},
	} {
		id := parse(t, Params{Grants: g}).ID()
		if _, taken := ids[id]; taken {
			t.Errorf("%+v and %+v have the same ID", g, ids[id])
		}
		ids[id] = g
	}
	labels := []Grant{{Filter: "labels.a == 'b'"}}
	if parse(t, Params{Grants: labels}).ID() == parse(t, Params{Grants: labels, LabelsAt: "metadata"}).ID() {
		t.Error("labels elsewhere make the same definition")
	}
}

// TestExcept: what is left out is left out everywhere in a value, and nothing else is.
func TestExcept(t *testing.T) {
	for _, c := range []struct {
		grants      []Grant
		value, want string
	}{
		{[]Grant{{Filter: "true", Except: []string{"secret"}}}, `{"a":1,"secret":2,"b":{"secret":3}}`, `{"a":1,"b":{"secret":3}}`},
		{[]Grant{{Filter: "true", Except: []string{"secret"}}}, `{"secr\u0065t":1,"a": [1, 2],"secret":{}}`, `{"a":[1, 2]}`},
		{[]Grant{{Filter: "true", Except: []string{"a.secret"}}}, `{"a":[{"secret":1,"x":2},3,[{"secret":4}]],"b":5}`, `{"a":[{"x":2},3,[{}]],"b":5}`},
		{[]Grant{{Filter: "true", Except: []string{"a.secret"}}}, `{"a":7}`, `{"a":7}`},
		{[]Grant{{Filter: "true", Except: []string{`m."x.y/z"`}}}, `{"m":{"x.y/z":1,"x":{"y/z":2}}}`, `{"m":{"x":{"y/z":2}}}`},
		{[]Grant{{Filter: "true", Except: []string{"secret"}}}, `[{"secret":1},2]`, `[{},2]`},
		{[]Grant{{Filter: "true", Except: []string{"secret"}}}, `"secret"`, `null`},
		{[]Grant{{Filter: "true", Fields: []string{"a"}, Except: []string{"a.b", "a.c.d"}}}, `{"a":{"b":1,"c":{"d":2,"e":3},"f":4},"g":5}`, `{"a":{"c":{"e":3},"f":4}}`},
		// What several grants show adds up.
		{[]Grant{{Filter: "true", Except: []string{"a"}}, {Filter: "true", Except: []string{"b"}}}, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{[]Grant{{Filter: "true", Except: []string{"a", "b"}}, {Filter: "true", Except: []string{"a.x"}}}, `{"a":{"x":1,"y":2},"b":3}`, `{"a":{"y":2},"b":3}`},
		{[]Grant{{Filter: "true", Except: []string{"a"}}, {Filter: "true", Fields: []string{"a.b"}}}, `{"a":{"b":1,"c":2},"d":3}`, `{"a":{"b":1},"d":3}`},
		{[]Grant{{Filter: "true", Except: []string{"a"}}, {Filter: "value.d == 4"}}, `{"a":1,"d":4}`, `{"a":1,"d":4}`},
	} {
		d := parse(t, Params{Grants: c.grants})
		got, err := d.Project(stream.Resource{Key: "k", Revision: 1, Value: []byte(c.value)})
		if err != nil || string(got.Value) != c.want {
			t.Errorf("%+v: %s is projected to %s, %v, want %s", c.grants, c.value, got.Value, err, c.want)
		}
		again := parse(t, Params{Grants: d.Params().Grants})
		if again.ID() != d.ID() {
			t.Errorf("%+v are given as %+v, which is another definition", c.grants, d.Params().Grants)
		}
	}
	d := parse(t, Params{Grants: []Grant{{Filter: "true", Except: []string{"secret"}}}})
	got, err := d.Project(stream.Resource{Key: "k", Revision: 1, Value: []byte(`"eyJzZWNyZXQiOjF9"`), Encoding: stream.Base64})
	if err != nil || string(got.Value) != "null" || got.Encoding != "" {
		t.Errorf("bytes are projected to %s, %v, want null: nobody knows what is in it", got.Value, err)
	}
}

// TestManyGrantsThatLeaveOutShowAll: what one of them leaves out, others show.
func TestManyGrantsThatLeaveOutShowAll(t *testing.T) {
	var all []Grant
	value := "{"
	for i := range MaxGrants {
		g := Grant{Filter: fmt.Sprintf("value.n != %d", i)}
		for j := range 40 {
			g.Except = append(g.Except, fmt.Sprintf("f%d.%d", j, i))
		}
		all = append(all, g)
	}
	for j := range 40 {
		value += fmt.Sprintf(`"f%d":{"1":2},`, j)
	}
	d := parse(t, Params{Grants: all})
	value += `"n":-1}`
	got, err := d.Project(stream.Resource{Key: "k", Revision: 1, Value: []byte(value)})
	if err != nil || string(got.Value) != value {
		t.Errorf("got %s, %v", got.Value, err)
	}
}

func TestNoGrantShowsNothing(t *testing.T) {
	d := parse(t, Params{Grants: []Grant{}})
	r := stream.Resource{Key: "a", Revision: 1, Value: []byte("1")}
	if matches, err := d.Matches(r); matches || err != nil {
		t.Errorf("it matches %t, %v", matches, err)
	}
	if d.IsWhole() || !d.filters() || !d.Indexed() || d.Params().Grants == nil {
		t.Errorf("%+v", d.Params())
	}
	var x Index[string]
	x.Add("", d)
	if len(candidates(t, &x, to("1"))) != 0 {
		t.Error("a change meets a definition that shows nothing")
	}
	x.Remove("")
	checkEmpty(t, &x)
}

// TestFailingGrantIsReported: it does not hold, and others still do.
func TestFailingGrantIsReported(t *testing.T) {
	r := stream.Resource{Key: "a", Revision: 1, Value: []byte(`{"n":1}`)}
	for _, c := range []struct {
		grants  []Grant
		matches bool
		want    error
	}{
		{[]Grant{{Filter: "value.m == 1"}}, false, NoResult},
		{[]Grant{{Filter: "value.m == 1"}, {Filter: "value.n == 1"}}, true, NoResult},
		{[]Grant{{Filter: "value.n == 1"}}, true, nil},
	} {
		if matches, err := parse(t, Params{Grants: c.grants}).Matches(r); matches != c.matches || !errors.Is(err, c.want) {
			t.Errorf("%+v: got %t, %v, want %t, %v", c.grants, matches, err, c.matches, c.want)
		}
	}
}

// TestNarrow makes what Parse makes of the grants and the narrowing together.
func TestNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		base, err := Parse(Params{Grants: p.Grants, LabelsAt: p.LabelsAt})
		if err != nil {
			t.Fatal(err)
		}
		want, err := Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		p.Grants = []Grant{{Filter: "true"}}
		if got, err := base.Narrow(p); err != nil || got.ID() != want.ID() || !reflect.DeepEqual(got.Params(), want.Params()) {
			t.Errorf("got %+v, %v, want %+v", got.Params(), err, want.Params())
		}
	})
}

// TestIndexLooksUpGrants: by what narrows the watch, or else by all grants.
func TestIndexLooksUpGrants(t *testing.T) {
	for _, c := range []struct {
		params      Params
		met, passed Change
	}{
		{Params{Grants: []Grant{{Filter: `value.team == "a"`}}}, to(`{"team":"a"}`), to(`{"team":"b"}`)},
		{Params{Grants: []Grant{{Filter: `value.team == "a"`, Fields: []string{"x"}}, {Filter: `value.n == 1`}}}, to(`{"n":1}`), to(`{"n":2,"team":"b"}`)},
		{Params{Grants: []Grant{{Filter: `labels.a == "b"`}}, LabelsAt: "meta"}, to(`{"meta":{"a":"b"}}`), to(`{"labels":{"a":"b"}}`)},
		{Params{Grants: []Grant{{Filter: `key.startsWith("key-")`}}}, to(`1`), Change{New: &stream.Resource{Key: "other"}}},
		{Params{Filter: `value.n == 1`, Grants: []Grant{{Filter: `value.m > 1`, Fields: []string{"n"}}}}, to(`{"n":1,"m":2}`), to(`{"n":2,"m":2}`)},
		{Params{Labels: `zone=x`, Grants: []Grant{{Filter: `value.m > 1`, Fields: []string{"n"}}}}, to(`{"labels":{"zone":"x"}}`), to(`{"m":2}`)},
	} {
		var x Index[string]
		x.Add("", parse(t, c.params))
		if len(candidates(t, &x, c.met)) != 1 || len(candidates(t, &x, c.passed)) != 0 || !parse(t, c.params).Indexed() {
			t.Errorf("%+v: met by %v, %v", c.params, candidates(t, &x, c.met), candidates(t, &x, c.passed))
		}
	}
	// A value that is no object is null to who sees only fields of it.
	d := parse(t, Params{Filter: "value == null", Grants: []Grant{{Filter: "true", Fields: []string{"a"}}}})
	var x Index[string]
	x.Add("", d)
	if found := candidates(t, &x, to("5")); found[""] != [2]bool{false, true} || d.Indexed() {
		t.Errorf("found %v", found)
	}
}

func TestWrongGrants(t *testing.T) {
	many := make([]Grant, MaxGrants+1)
	for i := range many {
		many[i].Filter = fmt.Sprintf("value.n == %d", i)
	}
	for _, c := range []struct {
		grants []Grant
		want   string
	}{
		{many, "grants, column 1: there are 65 grants, and at most 64 are allowed"},
		{[]Grant{{Filter: `key == "` + strings.Repeat("a", MaxGrantsText) + `"`}}, "grants, column 1: the grants are 65545 bytes long together, and at most 65536 are allowed"},
		{[]Grant{{Filter: `key in ["` + strings.Repeat(`\n`, 4) + strings.Repeat("\a", MaxGrantsText/2) + `"]`}}, ""},
		{[]Grant{{}}, "grants, column 1: the filter is empty"},
		{[]Grant{{Filter: "value.n = 1"}}, "grants, column 9: = is no operator: did you mean ==?"},
		{[]Grant{{Filter: "true", Except: []string{"a..b"}}}, "grants, column 3: a name is missing before ."},
		{[]Grant{{Filter: "true", Fields: []string{"a"}, Except: []string{"a"}}}, "a is not below one of the fields"},
		{[]Grant{{Filter: "true", Fields: []string{"a.b"}, Except: []string{"a"}}}, "a is not below one of the fields"},
		{[]Grant{{Filter: "true", Fields: []string{"a"}, Except: []string{"b.c"}}}, "b.c is not below one of the fields"},
		{[]Grant{{Filter: "true", Fields: []string{"a..b"}}}, "grants, column 3: a name is missing before ."},
		{[]Grant{{Filter: "true", Fields: []string{strings.Repeat("a.", MaxNames) + "b"}}}, "has 33 names, and at most 32 are allowed"},
	} {
		_, err := Parse(Params{Grants: c.grants})
		var e *Error
		if !errors.As(err, &e) || e.Parameter != "grants" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80v: got %.200v, want %s", c.grants, err, c.want)
		}
	}
}

// TestLongGrants: grants may be longer than what clients ask for.
func TestLongGrants(t *testing.T) {
	long := strings.Repeat("a", MaxText)
	r := stream.Resource{Key: long, Revision: 1, Value: []byte("1")}
	if matches, err := parse(t, Params{Grants: []Grant{{Filter: fmt.Sprintf("key == %q", long)}}}).Matches(r); !matches || err != nil {
		t.Errorf("it matches %t, %v", matches, err)
	}
}

// TestNamespacesOfGrants: a definition of namespaces is found by the key alone, and equal ones are one.
func TestNamespacesOfGrants(t *testing.T) {
	parse := func(grants ...Grant) *Definition {
		t.Helper()
		d, err := Parse(Params{Grants: grants})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	some := parse(Grant{Filter: "true", Namespaces: []string{"shop", "web", "shop"}})
	for key, want := range map[string]bool{"shop/a": true, "web/a/b": true, "shop": false, "shop2/a": false, "sho/a": false, "/a": false, "": false} {
		if got, err := some.Matches(stream.Resource{Key: key, Value: []byte("x")}); got != want || err != nil {
			t.Errorf("%q: %v, %v", key, got, err)
		}
	}
	if !some.Indexed() || some.Costly() || some.IsWhole() || !some.Hides() || !some.Restricts() || some.Projects() {
		t.Error("a view of namespaces costs more than it must, or hides nothing")
	}
	again, err := Parse(some.Params())
	if err != nil || again.ID() != some.ID() || parse(Grant{Filter: "true", Namespaces: []string{"web", "shop"}}).ID() != some.ID() {
		t.Errorf("the same namespaces have another ID: %v", err)
	}
	ids := map[string]bool{}
	for _, d := range []*Definition{
		some, parse(Grant{Filter: "true", Namespaces: []string{"shop"}}), parse(Grant{Filter: "true"}), parse(Grant{Filter: "true", Namespaces: []string{}}),
		parse(Grant{Filter: "true", Namespaces: []string{"shop", "web"}, Except: []string{"x"}}), parse(Grant{Filter: "key == 'x'", Namespaces: []string{"shop", "web"}}),
		parse(Grant{Filter: "true", Namespaces: []string{"shopweb"}}), parse(Grant{Filter: "key == 'x'", Except: []string{"namespaces"}}),
	} {
		if ids[d.ID()] {
			t.Errorf("two definitions have the ID %s", d.ID())
		}
		ids[d.ID()] = true
	}
	many := make([]string, MaxNamespaces+1)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	if _, err := Parse(Params{Grants: []Grant{{Filter: "true", Namespaces: many}}}); err == nil || !strings.Contains(err.Error(), "there are 10001 namespaces") {
		t.Errorf("too many: %v", err)
	}
	parse(Grant{Filter: "true", Namespaces: many[1:]})
}

// TestDefinitionsWithoutNamespacesAreTheSame: positions of clients are of these.
func TestDefinitionsWithoutNamespacesAreTheSame(t *testing.T) {
	d, err := Parse(Params{Grants: []Grant{{Filter: "value.a == 1", Fields: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.encode(Window{})); strings.Contains(got, "namespaces") {
		t.Errorf("%q", got)
	}
}
