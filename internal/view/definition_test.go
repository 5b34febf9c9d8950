package view

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

func parse(t testing.TB, p Params) *Definition {
	t.Helper()
	d, err := Parse(p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	return d
}

// TestEqualDefinitionsShare: what is written differently and is the same has one ID.
func TestEqualDefinitionsShare(t *testing.T) {
	for _, same := range [][]Params{
		{{}, {LabelsAt: "metadata.labels"}, {Labels: " "}, {ValueSize: 100}},
		{{Labels: "a=x"}, {Labels: "a==x"}, {Labels: "a in (x)"}, {Labels: " a in ( x,x )"}, {Labels: "a=x,a in (x)"}, {Labels: "a=x", LabelsAt: "labels"}, {Labels: "a=x", LabelsAt: `"labels"`}},
		{{Labels: "b!=y,a in (x,y)"}, {Labels: "a in (y,x),b notin (y)"}},
		{{Labels: "a>7"}, {Labels: "a>007"}},
		{{Fields: []string{"a,b.c"}}, {Fields: []string{"b.c", "a"}}, {Fields: []string{" a.x, a ,b . \"c\",b.c"}}},
		{
			{Filter: `value.a == "x" && key != "y"`}, {Filter: `(value.a)=='x'&&((key != 'y'))`},
			{Filter: "value.a\n== \"\\x78\" && // why\nkey != r'y'"}, {Filter: `value.a == """x""" && key != "y"`},
		},
		{{Filter: "value.a || value.b || value.c"}, {Filter: "(value.a || value.b) || value.c"}, {Filter: "value.a || (value.b || value.c)"}},
		{{Filter: "value.x == 1e2"}, {Filter: "value.x == 100.0"}, {Filter: "value.x == 1.0e+2"}},
		{{Filter: "value.x == 0x10"}, {Filter: "value.x == 16"}},
		{{Filter: "!!value.a"}, {Filter: "value.a"}},
		{{Filter: "value.l.exists(i, i==1)"}, {Filter: "(value.l).exists(i, (i) == 1)"}, {Filter: ".value.l.exists(i, i == 1)"}},
	} {
		var first string
		for i, p := range same {
			id := parse(t, p).ID()
			if i == 0 {
				first = id
			}
			if id != first {
				t.Errorf("%+v and %+v have different IDs", same[0], p)
			}
		}
	}
}

// TestDifferentDefinitionsDoNot: all of these have IDs of their own.
func TestDifferentDefinitionsDoNot(t *testing.T) {
	ids := map[string]Params{}
	for _, p := range []Params{
		{}, {Prefix: "a"}, {Prefix: "a\x00"}, {Prefix: "\xff"}, {Labels: "a"}, {Filter: "value.a"}, {Fields: []string{"a"}},
		{Fields: []string{"a,b"}}, {Fields: []string{`"a,b"`}}, {Fields: []string{"a.b"}}, {Fields: []string{`"a.b"`}}, {Fields: []string{`"a\u0000b"`}},
		{Fields: []string{`""`}}, {Fields: []string{`"".""`}}, {Fields: []string{"é"}}, {Fields: []string{"e\u0301"}},
		{Labels: "a=x"}, {Labels: "a=x", LabelsAt: "metadata.labels"}, {Labels: "a=x", LabelsAt: `"metadata.labels"`}, {Labels: "a!=x"}, {Labels: "a=x,b=x"}, {Labels: "a in (x,b)"}, {Labels: "a="}, {Labels: "!a"},
		{Prefix: "a", Labels: "b"}, {Prefix: "ab"}, {Prefix: "a", Filter: "value.a"}, {Prefix: "value.a"},
		{Filter: "value.x == 1"}, {Filter: `value.x == "1"`}, {Filter: "value.x == 1.0"}, {Filter: "value.x == 1u"}, {Filter: `value.x == b"1"`}, {Filter: "value.x == true"}, {Filter: "value.x == null"},
		{Filter: "value.x == -0.0"}, {Filter: "value.x == 0.0"}, {Filter: "value.x == 0"}, {Filter: `value.x == "é"`}, {Filter: `value.x == "e\u0301"`}, {Filter: `value.x == "\u0000"`}, {Filter: `value.x == ""`},
		{Filter: "value.x == 9007199254740993"}, {Filter: "value.x == 9007199254740992"},
		{Filter: "value.x.y == 1"}, {Filter: `value["x.y"] == 1`}, {Filter: "-value.x.y == 1"}, {Filter: "(-value.x).y == 1"},
		{Filter: "value.a && value.b || value.c"}, {Filter: "value.a && (value.b || value.c)"}, {Filter: "value.a - (value.b - value.c) == 0"}, {Filter: "value.a - value.b - value.c == 0"},
		{Filter: "value.a ? value.b : value.c"}, {Filter: `value.x == "a" && value.y == "b"`}, {Filter: `value.x == "a\" && value.y == \"b"`},
		{Filter: "value.x in [1, 2]"}, {Filter: "value.x in [[1, 2]]"}, {Filter: `value.x in ["1, 2"]`}, {Filter: "value.x in [1.0, 2]"},
	} {
		id := parse(t, p).ID()
		if other, taken := ids[id]; taken {
			t.Errorf("%+v and %+v have the same ID", other, p)
		}
		ids[id] = p
		if !regexp.MustCompile(`^[a-z0-9]{32}$`).MatchString(id) {
			t.Errorf("%+v: ID %q", p, id)
		}
	}
}

func TestIsWhole(t *testing.T) {
	for _, c := range []struct {
		params                   Params
		whole, filters, projects bool
	}{
		{Params{}, true, false, false},
		{Params{LabelsAt: "metadata.labels"}, true, false, false},
		{Params{Prefix: "a"}, false, true, false},
		{Params{Labels: "a"}, false, true, false},
		{Params{Filter: "true"}, false, true, false},
		{Params{Fields: []string{"a"}}, false, false, true},
	} {
		d := parse(t, c.params)
		if d.IsWhole() != c.whole || d.filters() != c.filters || d.Projects() != c.projects {
			t.Errorf("%+v: got %t, %t, %t", c.params, d.IsWhole(), d.filters(), d.Projects())
		}
	}
}

// TestCanonicalForm: Parse makes the same definition of it, and however a definition is
// written, it has the same one.
func TestCanonicalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		e := drawExpression(t, 3)
		p.Filter = e.write(t)
		d, err := Parse(p)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		again, err := Parse(d.Params())
		if err != nil || again.ID() != d.ID() || !reflect.DeepEqual(again.Params(), d.Params()) {
			t.Errorf("%+v: got %+v, %v, want %+v", p, again, err, d.Params())
		}
		p.Filter = e.write(t)
		if other, err := Parse(p); err != nil || other.ID() != d.ID() {
			t.Errorf("%q: got %v, want what %q is", p.Filter, err, d.Params().Filter)
		}
	})
}

// TestIDIsThatOfTheCanonicalForm: two definitions have the same ID if and only if they
// have the same canonical form.
func TestIDIsThatOfTheCanonicalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, errA := Parse(drawParams(t))
		b, errB := Parse(drawParams(t))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if same := reflect.DeepEqual(a.Params(), b.Params()); same != (a.ID() == b.ID()) {
			t.Errorf("%+v and %+v: same IDs %t", a.Params(), b.Params(), !same)
		}
	})
}

// TestMatchesAgreesWithCEL over the whole value, decoded by encoding/json.
func TestMatchesAgreesWithCEL(t *testing.T) {
	env := plainCEL(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		d, err := Parse(p)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		model := newNaive(t, env, p, d)
		for range 10 {
			r := drawResource(t, drawKey(t))
			got, err := d.Matches(*r)
			if want := model.matches(*r); got != want {
				t.Errorf("%+v of %+v with %s: got %t, %v, want %t", p, *r, r.Value, got, err, want)
			}
			if got && err != nil && p.Grants == nil { // one grant can fail where another holds
				t.Errorf("%+v matches %+v with %v", p, *r, err)
			}
		}
	})
}

func TestMatches(t *testing.T) {
	value := `{"n":100,"e":1e2,"big":9007199254740993,"neg":-0,"huge":18446744073709551615,"team":"a","on":true,"no":null,"tags":["x","y"],"spec":{"a.b":1,"x":{"y":2}},"labels":{"zone":"eu","count":1},"twice":{"a":1,"a":2,"b":3}}`
	for _, c := range []struct {
		params Params
		want   bool
		err    error
	}{
		{Params{}, true, nil},
		{Params{Prefix: "a/"}, true, nil},
		{Params{Prefix: "b/"}, false, nil},
		{Params{Labels: "zone=eu"}, true, nil},
		{Params{Labels: "zone in (us,eu)"}, true, nil},
		{Params{Labels: "zone=us"}, false, nil},
		{Params{Labels: "count=1"}, false, nil}, // no string, so no label
		{Params{Labels: "!count"}, true, nil},
		{Params{Labels: "x", LabelsAt: "spec"}, false, nil},
		{Params{Labels: "a", LabelsAt: "twice"}, false, Repeated},
		{Params{Labels: "!a", LabelsAt: "absent.path"}, true, nil},
		{Params{Filter: `labels.zone == "eu"`}, true, nil},
		{Params{Filter: `has(labels.count)`}, false, nil},
		{Params{Filter: `value.n == 1e2 && value.e == 100 && value.e == 100u`}, true, nil},
		{Params{Filter: `value.big == 9007199254740993`}, true, nil},
		{Params{Filter: `value.big == 9007199254740992`}, false, nil},
		{Params{Filter: `value.huge == 18446744073709551615u`}, true, nil},
		{Params{Filter: `value.neg == 0 && value.neg == -0.0`}, true, nil},
		{Params{Filter: `value.n == "100"`}, false, nil},
		{Params{Filter: `value.absent == 1`}, false, NoResult},
		{Params{Filter: `value.absent != 1`}, false, NoResult},
		{Params{Filter: `!has(value.absent)`}, true, nil},
		{Params{Filter: `has(value.no) && value.no == null`}, true, nil},
		{Params{Filter: `value.absent == 1 || value.n == 100`}, true, nil},
		{Params{Filter: `value.team`}, false, NoResult},
		{Params{Filter: `value.on`}, true, nil},
		{Params{Filter: `value.spec["a.b"] == 1`}, true, nil},
		{Params{Filter: `value.tags[1] == "y" && "x" in value.tags`}, true, nil},
		{Params{Filter: `value.tags.exists(t, t.startsWith("y"))`}, true, nil},
		{Params{Filter: `value.twice.b == 3`}, true, nil},
		{Params{Filter: `value.twice.a == 2`}, false, Repeated},
		{Params{Filter: `value.twice.a == 2 || true`}, false, Repeated},
		{Params{Filter: `has(value.twice)`}, false, Repeated},
		{Params{Filter: `value == 1`}, false, Repeated},
		{Params{Filter: `revision == 7`}, true, nil},
		{Params{Filter: `key.matches("^a/[0-9]$")`}, true, nil},
	} {
		d := parse(t, c.params)
		r := stream.Resource{Key: "a/1", Revision: 7, Value: []byte(value)}
		if got, err := d.Matches(r); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v: got %t, %v, want %t, %v", c.params, got, err, c.want, c.err)
		}
	}
}

func TestMatchesWithoutJSON(t *testing.T) {
	for _, c := range []struct {
		params Params
		want   bool
		err    error
	}{
		{Params{Filter: `value == "AAEC"`}, false, NotJSON},
		{Params{Filter: `!has(value.x)`}, false, NotJSON},
		{Params{Filter: `key == "k" || value.x == 1`}, true, nil},
		{Params{Filter: `key == "k"`}, true, nil},
		{Params{Labels: "!a"}, true, nil},
		{Params{Labels: "a"}, false, nil},
	} {
		d := parse(t, c.params)
		if got, err := d.Matches(stream.Resource{Key: "k", Value: []byte(`"AAEC"`), Encoding: stream.Base64}); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v: got %t, %v, want %t, %v", c.params, got, err, c.want, c.err)
		}
	}
	if ok, err := parse(t, Params{Filter: `value == "text"`}).Matches(stream.Resource{Key: "k", Value: []byte(`"text"`)}); !ok {
		t.Errorf("text is a JSON string: got %v", err)
	}
}

// TestCostLimit: an evaluation that costs too much is given up.
func TestCostLimit(t *testing.T) {
	d := parse(t, Params{Filter: `value.l.all(x, x == 1 && x == 1 && x == 1)`})
	list := func(n int) stream.Resource {
		return stream.Resource{Key: "k", Value: []byte(`{"l":[` + strings.Repeat("1,", n) + `1]}`)}
	}
	if ok, err := d.Matches(list(1000)); !ok {
		t.Errorf("1,000 elements: got %v", err)
	}
	if ok, err := d.Matches(list(FilterCostLimit)); ok || !errors.Is(err, TooCostly) {
		t.Errorf("%d elements: got %t, %v", FilterCostLimit, ok, err)
	}
}

// TestWorkLimit: so is one that does too much with large texts or lists, and it has a result for
// smaller ones. What it has cost is counted, and so is reading the value.
func TestWorkLimit(t *testing.T) {
	value := func(n int) stream.Resource {
		list := "[" + strings.Repeat("1,", n) + "1]"
		return stream.Resource{Key: "k", Value: []byte(`{"s":"` + strings.Repeat("a", n) + `","l":` + list + `,"m":` + list + `}`)}
	}
	for filter, matches := range map[string]bool{
		`!value.s.matches('[ab]*a[ab]{450}z')`: true, `value.s.matches('(a+)+b') || true`: true, `value.s.contains("b") || value.l == value.m || value.l != value.m`: true,
		strings.Repeat("value.l != value.m || ", 80) + "false": false,
	} {
		d := parse(t, Params{Filter: filter})
		if !d.Costly() {
			t.Errorf("%.60s is not costly", filter)
		}
		m := d.Matcher()
		if got, err := m.Matches(value(100)); got != matches || err != nil {
			t.Errorf("%.60s of a small value: got %t, %v", filter, got, err)
		}
		small := m.Spent()
		got, err := m.Matches(value(600_000))
		if got || !errors.Is(err, TooCostly) {
			t.Errorf("%.60s of a large value: got %t, %v", filter, got, err)
		}
		if m.Spent() < 10*small || m.Spent() > 3*FilterWorkLimit {
			t.Errorf("%.60s costs %d, and %d for a small value", filter, m.Spent(), small)
		}
	}
	m := parse(t, Params{Filter: `value.x == 1`}).Matcher()
	if _, _ = m.Matches(value(100_000)); m.Spent() < 10_000 {
		t.Errorf("reading a value of 500 KB costs %d", m.Spent())
	}
}

// TestDefinitionsAreShared: any goroutine may use one, for values of any size.
func TestDefinitionsAreShared(t *testing.T) {
	d := parse(t, Params{Prefix: "k", Labels: "!a", Filter: `value.l.all(x, x == 1)`, Fields: []string{"l"}})
	small, large := []byte(`{"l":[1]}`), []byte(`{"l":[`+strings.Repeat("1,", 5000)+`1]}`)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := stream.Resource{Key: "k", Revision: 1, Value: [][]byte{small, large}[i%2]}
			if ok, err := d.Matches(r); !ok {
				t.Errorf("got %v", err)
			}
			if got, err := d.Project(r); err != nil || len(got.Value) != len(r.Value) {
				t.Errorf("got %d bytes, %v", len(got.Value), err)
			}
			var x Index[int]
			x.Add(1, d)
			if got := candidates(t, &x, Change{New: &r}); !got[1][1] {
				t.Errorf("got %v", got)
			}
		})
	}
	wg.Wait()
}

func TestProject(t *testing.T) {
	for _, c := range []struct{ fields, value, encoding, want string }{
		{"", `{"a": 1}`, "", `{"a": 1}`},
		{"a", `{"b":1,"a":1.0}`, "", `{"a":1.0}`},
		{"a,spec.node", `{"spec":{"x":1,"node":"n"},"a":[]}`, "", `{"spec":{"node":"n"},"a":[]}`},
		{"a", `"text"`, "", `null`},
		{"a", `"AAEC"`, stream.Base64, `null`},
	} {
		p := Params{}
		if c.fields != "" {
			p.Fields = []string{c.fields}
		}
		got, err := parse(t, p).Project(stream.Resource{Key: "k", Revision: 1, Value: []byte(c.value), Encoding: c.encoding})
		if err != nil || string(got.Value) != c.want || got.Encoding != "" || got.Key != "k" || got.Revision != 1 {
			t.Errorf("%+v: got %+v with %s, %v", c, got, got.Value, err)
		}
	}
	if _, err := parse(t, Params{Fields: []string{"a"}}).Project(stream.Resource{Key: "k", Value: []byte("{")}); err == nil {
		t.Error("a value that is no JSON has no error")
	}
}

// FuzzParse: what is accepted has a canonical form that is accepted and means the same,
// and can be evaluated.
func FuzzParse(f *testing.F) {
	f.Add("a/", "a=b,c in (x,y)", `value.a == "x" && has(value.b)`, "a.b,c", "metadata.labels")
	for _, text := range leaves {
		f.Add("", "", text, "", "")
	}
	f.Fuzz(func(t *testing.T, prefix, labels, filter, fields, labelsAt string) {
		p := Params{Prefix: prefix, Labels: labels, Filter: filter, LabelsAt: labelsAt}
		if fields != "" {
			p.Fields = []string{fields}
		}
		d, err := Parse(p)
		if err != nil {
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.Problem == "" || wrong.Line < 1 || wrong.Column < 1 || strings.Contains(wrong.Problem, "canonical form") {
				t.Errorf("%+v: got %#v", p, err)
			}
			return
		}
		again, err := Parse(d.Params())
		if err != nil || again.ID() != d.ID() {
			t.Fatalf("%+v: the canonical form %+v is %v", p, d.Params(), err)
		}
		for i, value := range []string{`{"a":1,"b":"x","c":[1,{"a":2}],"labels":{"a":"b"}}`, `[]`, `null`} {
			r := stream.Resource{Key: fmt.Sprint("a/", i), Revision: 1, Value: []byte(value)}
			_, _ = d.Matches(r)
			if _, err := d.Project(r); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestEpochs checks that the epoch of a view depends on that of the watch and on the
// definition, and fits into a position.
func TestEpochs(t *testing.T) {
	a, b := parse(t, Params{Prefix: "a"}), parse(t, Params{Prefix: "b"})
	seen := map[string]bool{}
	for _, name := range []string{a.Epoch("e"), b.Epoch("e"), a.Epoch("f"), a.Epoch("_e")} {
		if seen[name] || stream.CanonicalEpoch(name) != name {
			t.Errorf("epoch %q", name)
		}
		seen[name] = true
	}
	if !strings.HasPrefix(a.Epoch("_e"), stream.UnnumberedEpoch) || strings.HasPrefix(a.Epoch("e"), stream.UnnumberedEpoch) {
		t.Error("the name does not say whether deletes have revisions")
	}
}
