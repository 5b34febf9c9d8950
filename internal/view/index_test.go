package view

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// candidates returns what Candidates yields, with what each says of before and after.
func candidates[ID comparable](t rapid.TB, x *Index[ID], c Change) map[ID][2]bool {
	t.Helper()
	found := map[ID][2]bool{}
	x.Candidates(c, func(c Candidate[ID]) {
		if _, twice := found[c.ID]; twice {
			t.Errorf("%v is yielded twice", c.ID)
		}
		before, _ := c.Before()
		after, _ := c.After()
		found[c.ID] = [2]bool{before, after}
	})
	return found
}

// TestIndexAgreesWithCEL: whatever definitions come and go, the index finds each that
// plain CEL over the whole value says has the resource before or after a change, and says
// the same of it.
func TestIndexAgreesWithCEL(t *testing.T) {
	env := plainCEL(t)
	rapid.Check(t, func(t *rapid.T) {
		var x Index[int]
		models := map[int]naive{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch id := rapid.IntRange(0, 9).Draw(t, "id"); rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				x.Remove(id)
				delete(models, id)
			case 1, 2, 3, 4:
				p := drawParams(t)
				d, err := Parse(p)
				if err != nil {
					t.Fatalf("%+v: %v", p, err)
				}
				x.Add(id, d)
				models[id] = newNaive(t, env, p, d)
			default:
				c := drawChange(t)
				checkCandidates(t, models, c, candidates(t, &x, c))
			}
		}
		for id := range models {
			x.Remove(id)
		}
		checkEmpty(t, &x)
	})
}

func drawChange(t *rapid.T) (c Change) {
	key := drawKey(t)
	if rapid.IntRange(0, 4).Draw(t, "created") > 0 {
		c.Old = drawResource(t, key)
	}
	if rapid.IntRange(0, 4).Draw(t, "deleted") > 0 {
		c.New = drawResource(t, key)
	}
	return c
}

func checkCandidates(t *rapid.T, models map[int]naive, c Change, found map[int][2]bool) {
	t.Helper()
	for id, model := range models {
		want := [2]bool{c.Old != nil && model.matches(*orNone(c.Old)), c.New != nil && model.matches(*orNone(c.New))}
		if got := found[id]; got != want {
			t.Errorf("%+v, from %+v to %+v: got %v, want %v", model.params, orNone(c.Old), orNone(c.New), got, want)
		}
		delete(found, id)
	}
	if len(found) > 0 {
		t.Errorf("got %v, which are not in the index", found)
	}
}

func orNone(r *stream.Resource) *stream.Resource {
	if r == nil {
		return &stream.Resource{}
	}
	return r
}

// checkEmpty: nothing stays of definitions that were removed.
func checkEmpty[ID comparable](t rapid.TB, x *Index[ID]) {
	t.Helper()
	if n := len(x.entries) + len(x.keys) + len(x.prefixes) + len(x.lengths) + len(x.ordered) + len(x.values) + len(x.rest); n != 0 || !x.paths.Empty() {
		t.Errorf("something is left: %+v", x)
	}
}

// TestIndexLooksUp: the definitions that a change does not meet.
func TestIndexLooksUp(t *testing.T) {
	for _, c := range []struct {
		params      Params
		met, passed Change
	}{
		{Params{Filter: `value.team == "a"`}, to(`{"team":"a"}`), to(`{"team":"b"}`)},
		{Params{Filter: `"a" == value.team && value.n > 5`}, to(`{"team":"a"}`), to(`{"n":6}`)},
		{Params{Filter: `value.team == "a"`}, to(`{"team":"\u0061"}`), to(`{"team":"\u0062"}`)},
		{Params{Filter: `value.team == "a\"b\\c"`}, to(`{"team":"a\"b\u005cc"}`), to(`{"team":"a"}`)},
		{Params{Filter: `value.team in ["a", "b", 1]`}, to(`{"team":1.0}`), to(`{"team":"c"}`)},
		{Params{Filter: `value.team in ["a", "b", "c", "d", "e"]`}, to(`{"team":"e"}`), to(`{"team":"f"}`)},
		{Params{Filter: `value.n == 100`}, to(`{"n":1e2}`), to(`{"n":"100"}`)},
		{Params{Filter: `value.n == 100u`}, to(`{"n":100}`), to(`{"n":101}`)},
		{Params{Filter: `value.n == 1e2`}, to(`{"n":100}`), to(`{"n":true}`)},
		{Params{Filter: `value.n == 18446744073709551615u`}, to(`{"n":18446744073709551615.0}`), to(`{"n":1}`)},
		{Params{Filter: `value.n in [1, "a", null]`}, to(`{"n":null}`), to(`{"n":2}`)},
		{Params{Filter: `value.on && value.n > 1`}, to(`{"on":true}`), to(`{"on":false}`)},
		{Params{Filter: `value["a.b"].c == "x"`}, to(`{"a.b":{"c":"x"}}`), to(`{"a":{"b":{"c":"x"}}}`)},
		{Params{Filter: `labels.zone == 'x'`}, to(`{"labels":{"zone":"x"}}`), to(`{"zone":"x"}`)},
		{Params{Labels: "zone=x"}, to(`{"labels":{"zone":"x"}}`), to(`{"labels":{"zone":"y"}}`)},
		{Params{Labels: "zone in (x,y),!a", LabelsAt: "metadata.labels"}, to(`{"metadata":{"labels":{"zone":"y"}}}`), to(`{"labels":{"zone":"x"}}`)},
		{Params{Prefix: "key-"}, to(`1`), Change{New: &stream.Resource{Key: "key"}}},
		{Params{Filter: `key.startsWith("key-") && true`}, to(`1`), Change{New: &stream.Resource{Key: "key"}}},
		{Params{Filter: `key == "key-1"`}, to(`1`), Change{New: &stream.Resource{Key: "key"}}},
		{Params{Filter: `key in ["x", "key-1"]`}, to(`1`), Change{New: &stream.Resource{Key: "key"}}},
		{Params{Filter: `value.team == "a"`}, Change{Old: to(`{"team":"a"}`).New, New: to(`{"team":"b"}`).New}, Change{Old: to(`{"team":"b"}`).New}},
	} {
		var x Index[string]
		x.Add("", parse(t, c.params))
		if len(candidates(t, &x, c.met)) != 1 || len(candidates(t, &x, c.passed)) != 0 {
			t.Errorf("%+v: met by %v, %v", c.params, candidates(t, &x, c.met), candidates(t, &x, c.passed))
		}
	}
}

func to(value string) Change {
	return Change{New: &stream.Resource{Key: "key-1", Revision: 1, Value: []byte(value)}}
}

// TestIndexChoosesWhatTellsApart: of several conditions, the one that others do not share.
func TestIndexChoosesWhatTellsApart(t *testing.T) {
	for name, params := range map[string]func(i int) Params{
		"value": func(i int) Params {
			return Params{Prefix: "key-", Filter: fmt.Sprintf(`value.on == 1 && value.n == %d`, i)}
		},
		"label":  func(i int) Params { return Params{Labels: fmt.Sprintf("a=x,n=v%d", i), Filter: "value.on == 1"} },
		"prefix": func(i int) Params { return Params{Prefix: fmt.Sprintf("key-%d", i), Filter: "value.on == 1"} },
	} {
		var x Index[int]
		for i := range 100 {
			x.Add(i, parse(t, params(i)))
		}
		c := to(`{"on":1,"n":1,"labels":{"a":"x","n":"v1"}}`)
		if met := slices.Sorted(maps.Keys(candidates(t, &x, c))); len(met) > 2 || !slices.Contains(met, 1) {
			t.Errorf("%s: a change meets %v", name, met)
		}
	}
}

func TestIndexReplaces(t *testing.T) {
	var x Index[string]
	x.Remove("a")
	x.Add("a", parse(t, Params{Filter: "value.n == 1"}))
	x.Add("a", parse(t, Params{Filter: "value.n == 2"}))
	if x.Len() != 1 || len(candidates(t, &x, to(`{"n":1}`))) != 0 || len(candidates(t, &x, to(`{"n":2}`))) != 1 {
		t.Error("the definition was not replaced")
	}
	if len(candidates(t, &x, Change{})) != 0 {
		t.Error("no resource concerns a definition")
	}
	x.Remove("a")
	checkEmpty(t, &x)
}
