package document

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/view/internal/randomjson"
	"pgregory.net/rapid"
)

func paths(t testing.TB, text string) (list []Path, set *Paths) {
	t.Helper()
	set = &Paths{}
	if text == "" {
		set.Add(nil)
		return []Path{nil}, set
	}
	list, err := ParseList(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		set.Add(p)
	}
	return list, set
}

func TestReadTakesOnlyWhatIsWanted(t *testing.T) {
	for _, c := range []struct {
		paths, value string
		want         any
	}{
		{"a", `{"a":1,"b":2}`, map[string]any{"a": int64(1)}},
		{"a.b", `{"a":{"b":[1,{"c":2}],"c":3}}`, map[string]any{"a": map[string]any{"b": []any{int64(1), map[string]any{"c": int64(2)}}}}},
		{"a.b", `{"a":[{"b":1}]}`, map[string]any{"a": []any{}}},
		{"a.b", `{"a":"text"}`, map[string]any{"a": "text"}},
		{"a.b", `{"a":{"c":1}}`, map[string]any{"a": map[string]any{}}},
		{"a", `[1,2]`, []any{}},
		{"a", `{"\u0061":1}`, map[string]any{"a": int64(1)}},
		{`"x.y".z`, ` { "x.y" : { "z" : null } } `, map[string]any{"x.y": map[string]any{"z": nil}}},
		{"", `[{"a":[]},1e2,18446744073709551615,-9223372036854775808,18446744073709551616]`,
			[]any{map[string]any{"a": []any{}}, 100.0, uint64(math.MaxUint64), int64(math.MinInt64), 18446744073709551616.0}},
		{"", `"\ud800"`, "\ufffd"},
	} {
		_, set := paths(t, c.paths)
		var d Document
		if err := d.Read([]byte(c.value), set); err != nil || !reflect.DeepEqual(d.Root, c.want) {
			t.Errorf("%s of %s: got %#v, %v, want %#v", c.paths, c.value, d.Root, err, c.want)
		}
	}
}

// TestReadAgain: a document has nothing of the value that was read before, and keeps no room
// for a large one.
func TestReadAgain(t *testing.T) {
	_, set := paths(t, "")
	large := map[string]any{}
	for i := range mostMembers + 1 {
		large[fmt.Sprint("m", i)] = map[string]any{"a": int64(i)}
	}
	text, err := json.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	for range 2 {
		for _, c := range []struct {
			value string
			want  any
		}{
			{`{"a":1,"b":{"a":2}}`, map[string]any{"a": int64(1), "b": map[string]any{"a": int64(2)}}},
			{`{"b":1}`, map[string]any{"b": int64(1)}},
			{`[{"a":1}]`, []any{map[string]any{"a": int64(1)}}},
			{`{}`, map[string]any{}},
			{string(text), large},
		} {
			if err := d.Read([]byte(c.value), set); err != nil || !reflect.DeepEqual(d.Root, c.want) {
				t.Errorf("%.50s: got %.50v, %v", c.value, d.Root, err)
			}
			if d.HasRepeats() {
				t.Errorf("%.50s: a member of another value is found again", c.value)
			}
		}
		if d.Reset(); d.members != nil {
			t.Errorf("there is room for %d members", len(large))
		}
	}
}

func TestReadRefusesWhatIsNoJSON(t *testing.T) {
	for _, bad := range []string{
		``, `{`, `}`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":1]`, `[1`, `[1,]`, `1 2`, `"`, `"\`, `nul`, `--1`, `:`, `,`, `{"a":{"b":}}`, `{1:2}`, `NaN`,
		strings.Repeat(`{"a":`, maxDepth+2) + "1" + strings.Repeat("}", maxDepth+2),
	} {
		_, set := paths(t, "")
		var d Document
		if d.Read([]byte(bad), set) == nil {
			t.Errorf("%.20s: no error", bad)
		}
	}
}

func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		path, value string
		want        bool
	}{
		{"a", `{"a":1,"a":1}`, true},
		{"a", `{"a":1,"\u0061":2}`, true},
		{"a", `{"a":1,"b":1,"b":2}`, false},
		{"a", `{"a":{"b":[{"c":1,"c":2}]}}`, true},
		{"a.b", `{"a":{"b":1},"a":{}}`, true},
		{"a.b", `{"a":{"b":1,"c":1,"c":1}}`, false},
		{"a.b", `{"a":[{"b":1,"b":1}]}`, false},
		{"", `{"b":1,"b":2}`, true},
	} {
		// The other paths make more of the value known, which changes nothing.
		for _, others := range []string{c.path, c.path + ",a,b,a.b,a.c"} {
			list, set := paths(t, strings.TrimPrefix(others, ","))
			if c.path == "" {
				set.Add(nil)
				list[0] = nil
			}
			var d Document
			if err := d.Read([]byte(c.value), set); err != nil || d.Repeats(list[0]) != c.want {
				t.Errorf("%q of %s: got %t, %v", c.path, c.value, !c.want, err)
			}
		}
	}
}

func TestWatchedPathsAreVisited(t *testing.T) {
	var set Paths
	b := set.Watch(Path{"a", "b"})
	set.Add(Path{"a"})
	var d Document
	if err := d.Read([]byte(`{"a":{"b":1e2,"c":3}}`), &set); err != nil {
		t.Fatal(err)
	}
	hundred, _ := ScalarOf(int64(100))
	if want := []Visit{{b, hundred}}; !reflect.DeepEqual(d.Visits, want) {
		t.Errorf("got %v, want %v", d.Visits, want)
	}
	set.Unwatch(Path{"a", "b"})
	if set.Find(Path{"a", "b"}) != nil {
		t.Error("the node is still there")
	}
	set.Remove(Path{"a"})
	if !set.Empty() || len(set.root.children)+len(set.root.named) != 0 {
		t.Error("the set is not empty")
	}
}

func TestProject(t *testing.T) {
	for _, c := range []struct{ paths, value, want string }{
		{"a", `{"b":1,"a": 1.50 ,"c":2}`, `{"a":1.50}`},
		{"b,a", `{"a":{"x": [1, 2]},"b":1E+2}`, `{"a":{"x": [1, 2]},"b":1E+2}`},
		{"a", `{"\u0061":"\u0062"}`, `{"\u0061":"\u0062"}`},
		{"a.b", `{"a":{"c":1}}`, `{"a":{}}`},
		{"a.b", `{"a":[1,{"b":2,"c":3},[{"b":4}],{}]}`, `{"a":[{"b":2},[{"b":4}],{}]}`},
		{"a.b", `{"a":1,"b":2}`, `{}`},
		{"a", `{"a":1,"a":2}`, `{"a":1,"a":2}`},
		{"a", `[{"a":1,"b":2},3]`, `[{"a":1}]`},
		{"a", `"text"`, `null`},
		{"a", `1`, `null`},
	} {
		_, set := paths(t, c.paths)
		if got, err := Project([]byte(c.value), set); err != nil || string(got) != c.want {
			t.Errorf("%s of %s: got %s, %v, want %s", c.paths, c.value, got, err, c.want)
		}
	}
}

// drawPaths draws paths along the names that values have.
func drawPaths(t *rapid.T) (list []Path, set *Paths) {
	set = &Paths{}
	for range rapid.IntRange(1, 4).Draw(t, "paths") {
		p := Path(rapid.SliceOfN(rapid.SampledFrom(randomjson.Names), 0, 3).Draw(t, "path"))
		list = append(list, p)
		set.Add(p)
	}
	return list, set
}

// TestReadAgreesWithEncodingJSON: at and below each path there is what the whole value
// has there.
func TestReadAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := []byte(randomjson.Value(t))
		list, set := drawPaths(t)
		checkRead(t, value, list, set)
	})
}

func checkRead(t rapid.TB, value []byte, list []Path, set *Paths) {
	t.Helper()
	var d Document
	if err := d.Read(value, set); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	ordered := decode(value)
	whole := plain(ordered)
	for _, p := range list {
		if got, want := d.Repeats(p), repeated(ordered, p); got != want {
			t.Errorf("%q of %s repeats: got %t, want %t", p, value, got, want)
		}
		if d.Repeats(p) {
			continue
		}
		got, found := lookup(d.Root, p)
		want, exists := lookup(whole, p)
		if found != exists || !reflect.DeepEqual(got, want) {
			t.Errorf("%q of %s: got %#v, %t, want %#v, %t", p, value, got, found, want, exists)
		}
	}
}

// TestProjectAgreesWithDecodeFilterEncode, and what it returns is JSON.
func TestProjectAgreesWithDecodeFilterEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := []byte(randomjson.Value(t))
		list, set := drawPaths(t)
		checkProject(t, value, list, set)
	})
}

func checkProject(t rapid.TB, value []byte, list []Path, set *Paths) {
	t.Helper()
	got, err := Project(value, set)
	if err != nil || !json.Valid(got) {
		t.Fatalf("%q of %s: got %s, %v", list, value, got, err)
	}
	want, kept := keep(decode(value), nil, list)
	if !kept {
		want = nil
	}
	if !reflect.DeepEqual(decode(got), want) {
		t.Errorf("%q of %s: got %s, want %v", list, value, got, want)
	}
	if again, err := Project(got, set); err != nil || string(again) != string(got) {
		t.Errorf("%q of %s: got %s, %v, want no change", list, got, again, err)
	}
}

// FuzzDocument reads and projects any bytes; those that are JSON agree with encoding/json.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":[1,2]},"a":1}`, `[1e400,-0,"\ud800"]`, `{"\u0061":{}}`, `{"a":`, `"`, `}`} {
		f.Add([]byte(seed), "a.b,c")
	}
	f.Fuzz(func(t *testing.T, value []byte, text string) {
		list, err := ParseList(text)
		if err != nil {
			list = []Path{nil}
		}
		var set Paths
		for _, p := range list {
			set.Add(p)
		}
		if json.Valid(value) && utf8.Valid(value) {
			checkRead(t, value, list, &set)
			checkProject(t, value, list, &set)
			return
		}
		var d Document
		_ = d.Read(value, &set)
		_, _ = Project(value, &set)
	})
}

// TestManyPaths: members are found by their names, however many there are, and no longer once
// their paths were removed.
func TestManyPaths(t *testing.T) {
	names := strings.Split("a b c d e f g h i j k l", " ")
	value := "{"
	for i, name := range names {
		value += fmt.Sprintf(`"%s":{"x":%d},`, name, i)
	}
	value = strings.TrimSuffix(value, ",") + "}"
	var set Paths
	check := func(from, to int) {
		t.Helper()
		var d Document
		if err := d.Read([]byte(value), &set); err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			wanted := i >= from && i < to
			if (set.Find(Path{name, "x"}) != nil) != wanted {
				t.Errorf("paths %d to %d: the node of %s exists: %t", from, to, name, !wanted)
			}
			if got := d.At(Path{name, "x"}); (got == any(int64(i))) != wanted {
				t.Errorf("paths %d to %d: %s.x is %v", from, to, name, got)
			}
		}
	}
	for i, name := range names {
		set.Add(Path{name, "x"})
		check(0, i+1)
	}
	for i, name := range names {
		set.Remove(Path{name, "x"})
		check(i+1, len(names))
	}
	if !set.Empty() {
		t.Error("the set is not empty")
	}
}
