package document

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestUnchanged compares Unchanged with what Find finds, for texts that differ in a few bytes.
func TestUnchanged(t *testing.T) {
	f := NewFinder([]Path{{"a"}, {"c", "d"}, {"c", "e", "f"}, {"long"}})
	unchanged := 0
	rapid.Check(t, func(t *rapid.T) {
		before := []byte(documentOf(t, 3))
		after := slices.Clone(before)
		for range rapid.IntRange(0, 2).Draw(t, "edits") {
			from := rapid.IntRange(0, len(after)).Draw(t, "from")
			to := min(len(after), from+rapid.IntRange(0, 9).Draw(t, "length"))
			with := rapid.SampledFrom([]string{"", "0", "1", "12", `"`, `\`, "{", "}", ",", " ", `x`, `"a":5,`, `,"a":6`, `"q":7,`, `null`, `{"d":1}`}).Draw(t, "with")
			after = slices.Replace(after, from, to, []byte(with)...)
		}
		if !f.Unchanged(before, after) {
			return
		}
		unchanged++
		old, new := make([][]byte, 4), make([][]byte, 4)
		okBefore, okAfter := f.Find(before, old), f.Find(after, new)
		if okBefore != okAfter || !slices.EqualFunc(old, new, func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }) {
			t.Fatalf("%s and %s: found %q and %q (%t, %t)", before, after, old, new, okBefore, okAfter)
		}
	})
	if unchanged == 0 {
		t.Error("all changes are changes of what is found")
	}
}

// documentOf draws an object, which may have a member twice.
func documentOf(t *rapid.T, depth int) string {
	text := "{"
	for i := range rapid.IntRange(0, 5).Draw(t, "members") {
		if i > 0 {
			text += ","
		}
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "long", `\u0061`}).Draw(t, "name")
		value := rapid.SampledFrom([]string{"0", "1", "12", "-1.5e3", `"x"`, `"a\"b"`, `"\\"`, "null", "[1,2]", " 3 "}).Draw(t, "value")
		if depth > 0 && rapid.Bool().Draw(t, "nested") {
			value = documentOf(t, depth-1)
		}
		text += fmt.Sprintf(`"%s":%s`, name, value)
	}
	return text + "}"
}

// TestUnchangedKnows: the usual changes are known to be none of what is found.
func TestUnchangedKnows(t *testing.T) {
	f := NewFinder([]Path{{"a"}, {"c", "d"}})
	const before = `{"a":1,"b":12,"c":{"d":"x","e":"0123456789"},"g":{"a":1,"d":2},"z":"abcdefgh"}`
	for _, change := range [][2]string{
		{`"b":12`, `"b":123`}, {`"b":12`, `"b":2`}, {`"b":12`, `"b":[12]`}, {`"0123456789"`, `"01289"`}, {`"0123456789"`, `null`}, {`"g":{"a":1`, `"g":{"a":2`}, {`"d":2}`, `"d":2,"c":3}`}, {"fgh", "fgi"}, {"fgh", ""}, {"x", "x"},
	} {
		after := bytes.Replace([]byte(before), []byte(change[0]), []byte(change[1]), 1)
		if !f.Unchanged([]byte(before), after) {
			t.Errorf("%s: not known to be unchanged", after)
		}
	}
	for _, change := range [][2]string{{`"a":1,`, `"a":2,`}, {`"a":1,`, ``}, {`"x"`, `"y"`}, {`"c":{`, `"q":{`}, {`"d":"x"`, `"q":"x"`}, {`"z"`, `"a"`}, {`"z"`, `"d":1,"z"`}, {`"c":{"d":"x",`, `"c":7,"e":{`}} {
		after := bytes.Replace([]byte(before), []byte(change[0]), []byte(change[1]), 1)
		if f.Unchanged([]byte(before), after) {
			t.Errorf("%s: unchanged", after)
		}
	}
}
