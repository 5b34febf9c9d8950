package postgres

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

func TestTextsOfTypes(t *testing.T) {
	for _, c := range []struct {
		typ        uint32
		text, want string
	}{
		{typeBool, "t", "true"},
		{typeBool, "f", "false"},
		{typeInt2, "-7", "-7"},
		{typeInt8, "9223372036854775807", "9223372036854775807"},
		{typeNumeric, "0.10000000000000000000001", "0.10000000000000000000001"},
		{typeNumeric, "NaN", `"NaN"`},
		{typeNumeric, "-Infinity", `"-Infinity"`},
		{typeFloat8, "1e-05", "1e-05"},
		{typeFloat4, "Infinity", `"Infinity"`},
		{typeJSON, "{ \"a\" :\n 1.0 }", `{"a":1.0}`},
		{typeJSONB, `{"a": [1, 2]}`, `{"a": [1, 2]}`},
		{typeBytea, `\x00ff10`, `"AP8Q"`},
		{typeBytea, `\x`, `""`},
		{typeTimestamptz, "2026-11-27 19:02:57.123456+00", `"2026-11-27T19:02:57.123456Z"`},
		{typeTimestamp, "2026-11-27 19:02:57", `"2026-11-27T19:02:57"`},
		{typeTimestamptz, "infinity", `"infinity"`},
		{typeTimestamptz, "0044-03-15 12:00:00+00 BC", `"0044-03-15 12:00:00+00 BC"`},
		{typeTimestamptz, "12026-11-27 19:02:57+00", `"12026-11-27 19:02:57+00"`},
		{1082, "2026-11-27", `"2026-11-27"`},
		{1007, "{1,2}", `"{1,2}"`},
		{25, "a\"b\n", `"a\"b\n"`},
	} {
		column := newColumn("c", c.typ, c.typ)
		if got := string(column.append(nil, []byte(c.text))); got != c.want {
			t.Errorf("type %d, %q: %s, want %s", c.typ, c.text, got, c.want)
		}
	}
}

// TestAnyTextIsJSON: whatever the server sends as the text of a type, the value is JSON on one line.
func TestAnyTextIsJSON(t *testing.T) {
	types := []uint32{typeBool, typeBytea, typeInt8, typeNumeric, typeFloat8, typeJSON, typeJSONB, typeTimestamp, typeTimestamptz, 25}
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(types).Draw(t, "type")
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-+0-9 :.\\xeE"{}T]*`)).Draw(t, "text")
		column := newColumn("c", typ, typ)
		got := column.append(nil, []byte(text))
		if !json.Valid(got) || !stream.OneLine(got) {
			t.Errorf("type %d, %q: %q", typ, text, got)
		}
	})
}

func TestKeysOfSeveralColumns(t *testing.T) {
	l, err := place(nil, []string{"a", "b"}, []string{"b", "x", "a"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) cell { return cell{cellText, []byte(s)} }
	got, err := l.keyOf([]cell{text("2/3"), {kind: cellNull}, text("50%")}, nil)
	if want := "50%25/2%2F3"; err != nil || got != want {
		t.Errorf("key %q, %v, want %q", got, err, want)
	}
	if _, err := l.keyOf([]cell{text("2"), text("x"), {kind: cellNull}}, nil); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("a key without a part: %v", err)
	}
	if _, err := l.keyOf([]cell{text("2")}, nil); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("a row of one column: %v", err)
	}
	old := []cell{text("2"), {kind: cellNull}, text("long")}
	if got, err := l.keyOf([]cell{text("2"), {kind: cellNull}, {kind: cellUnchanged}}, old); err != nil || got != "long/2" {
		t.Errorf("a part that has not changed: %q, %v", got, err)
	}
}

func TestUnchangedValues(t *testing.T) {
	l, err := place([]column{newColumn("a", 25, 25), newColumn("b", typeInt4, typeInt4)}, nil, []string{"b", "a"})
	if err != nil {
		t.Fatal(err)
	}
	tuple := []cell{{cellText, []byte("2")}, {kind: cellUnchanged}}
	got, err := l.valueOf(tuple, []byte(`{"a":"<\u2028>","b":1}`))
	if want := `{"a":"<\u2028>","b":2}`; err != nil || string(got) != want {
		t.Errorf("value %s, %v, want %s", got, err, want)
	}
	for _, before := range []string{"", `{"b":1}`} {
		if _, err := l.valueOf(tuple, []byte(before)); !errors.Is(err, stream.ErrUnresumable) {
			t.Errorf("before %q: %v, want %v", before, err, stream.ErrUnresumable)
		}
	}
}

func TestMissingColumn(t *testing.T) {
	if _, err := place([]column{newColumn("a", 25, 25)}, nil, []string{"b"}); !errors.Is(err, errChanged) {
		t.Errorf("error %v, want %v", err, errChanged)
	}
}
