package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// example is a section with a field of each type.
type example struct {
	Name    string        `yaml:"name"`
	Pump    string        `yaml:"pump,is=pump"`
	Enabled bool          `yaml:"enabled"`
	Count   int           `yaml:"count"`
	Size    int64         `yaml:"size"`
	Rate    int64         `yaml:"rate,off"`
	Memory  int64         `yaml:"memory,min=1MiB"`
	Wait    time.Duration `yaml:"wait"`
	Pulse   time.Duration `yaml:"pulse,min=1ms"`
	Stall   time.Duration `yaml:"stall,min=2s"`
	Age     time.Duration `yaml:"age,off"`
	Rescan  time.Duration `yaml:"rescan,min=1s,off"`
	Names   []string      `yaml:"names"`
	Nested  nested        `yaml:"nested"`
	Rules   []nested      `yaml:"rules"`
	Roles   []role        `yaml:"roles,named"`
	Grade   grade         `yaml:"grade"`
	Strict  strict        `yaml:"strict"`
	Derived string        `yaml:"-"`
}

type role struct {
	Name  string `yaml:"-"`
	Count int    `yaml:"count"`
}

// grade reads itself.
type grade int

func (g *grade) read(d *decoder, v decode.Value, _ decode.Key) {
	if s, ok := d.Text(v, "a letter", nil); ok {
		*g = grade(s.Expanded[0] - 'a')
	}
}

type strict struct {
	Address string `yaml:"address,required"`
}

type nested struct {
	Low  int `yaml:"low"`
	High int `yaml:"high"`
}

func (n *nested) check(d *decoder, at decode.Value) {
	if n.Low > n.High {
		d.Errorf(at, "want low up to high")
	}
}

// read decodes a text into an example, and returns one line for each error.
func read(t *testing.T, text string) (example, string) {
	t.Helper()
	d := newDecoder("f", fakeEnvironment())
	var e example
	if body := d.document([]byte(text)); body != nil {
		d.Section(decode.Value{Node: body}, &e)
	}
	return e, strings.ReplaceAll(d.Errs.Sorted().Error(), "f:", "")
}

func TestSection(t *testing.T) {
	got, errs := read(t, `
name: "at ${HOST}"
pump: shards
enabled: TRUE
count: 1_000
size: 64KiB
rate: 0
memory: 1MiB
wait: 1ns
pulse: &p 1ms
stall: 1h30m
age: 0s
rescan: 0s
names: [a, "1"]
nested: &n { low: 1, high: 2 }
rules:
  - *n
  - { high: 3 }
  -
roles: { b: { count: 2 }, a: }
grade: c
`)
	if errs != "" {
		t.Fatal(errs)
	}
	want := example{
		Name: "at 127.0.0.1", Pump: "shards", Enabled: true, Count: 1000, Size: 64 << 10, Rate: -1, Memory: 1 << 20,
		Wait: 1, Pulse: time.Millisecond, Stall: 90 * time.Minute, Age: Off, Rescan: Off, Names: []string{"a", "1"},
		Nested: nested{1, 2}, Rules: []nested{{1, 2}, {0, 3}, {}},
		Roles: []role{{"b", 2}, {"a", 0}}, Grade: 2,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
}

func TestSectionErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an unknown key with one like it", "nmae: a", `1:1: unknown key "nmae" in the configuration; did you mean "name"?`},
		{"an unknown key", "nested: { x: 1 }", `1:11: unknown key "x" in nested; there are high, low`},
		{"a field without a key", "derived: a", `1:1: unknown key "derived" in the configuration; there are age, count, `},
		{"a key twice", "count: 1\nsize: 1\ncount: 2", `3:1: "count" is given twice, first on line 1`},
		{"a key twice, in a list", "rules: [{ high: 1, high: 1 }]", `1:20: rules[0]: "high" is given twice, first on line 1`},
		{"a list for text", "name: [a]", "1:7: name: want text (in quotation marks if it looks like a number), not a list"},
		{"a number for text", "name: 1", "1:7: name: want text (in quotation marks if it looks like a number), not a number"},
		{"text for a list", "names: a", "1:8: names: want a list, not text"},
		{"a number in a list of text", "names: [a, 1]", "1:12: names[1]: want text (in quotation marks if it looks like a number), not a number"},
		{"a list for a section", "nested:\n  - low: 1", `2:3: nested: want a mapping, not a list: write the names without "-"`},
		{"text for true or false", "enabled: yes", `1:10: enabled: "yes": want true or false`},
		{"a mapping for a number", "count: { a: 1 }", "1:8: count: want a whole number of at least 1, not a mapping"},
		{"nothing for a number", "size:", "1:7: size: want a number of bytes of at least 1, such as 65536 or 64KiB, not nothing"},
		{"no bytes", "size: 0", `1:7: size: "0": want a number of bytes of at least 1, such as 65536 or 64KiB`},
		{"too few bytes", "memory: 1KiB", `1:9: memory: "1KiB": want a number of bytes of at least 1MiB, such as 512MiB or 2GiB`},
		{"too many bytes", "rate: 9999999GiB", `1:7: rate: "9999999GiB": want at most 1125899906842624`},
		{"bytes below zero", "rate: -1", `1:7: rate: "-1": want a number of bytes such as 4096 or 4KiB, or 0 for none`},
		{"no unit", "wait: 5", `1:7: wait: "5": want a duration of more than zero, such as 500ms, 15s or 10m`},
		{"too short for a pulse", "pulse: 1us", `1:8: pulse: "1us": want a duration of at least 1ms, such as 500ms, 15s or 10m`},
		{"too short", "stall: 1s", `1:8: stall: "1s": want a duration of at least 2s`},
		{"too long", "age: 90000h", `1:6: age: "90000h": want at most 87600h, which is ten years`},
		{"no time", "age: -1s", `1:6: age: "-1s": want a duration such as 500ms, 15s or 10m, or 0s for none`},
		{"neither none nor long enough", "rescan: 1ms", "1:9: rescan: want a duration of at least 1s, or 0s for none"},
		{"another word", "pump: hose", `1:7: pump: "hose": want goroutines or shards`},
		{"a variable that is not set", `name: "${X}"`, "1:7: name: the environment variable X is not set"},
		{"keys that contradict each other", "nested: { low: 2, high: 1 }", "1:1: nested: want low up to high"},
		{"keys of a list that contradict each other", "rules: [{ low: 2 }]", "1:9: rules[0]: want low up to high"},
		{"a name is no name", "roles: { \"a b\": { cuont: 1 } }", "1:10: \"a b\": want a name of 1 to 64 letters, digits, '.', '_' or '-'\n1:19: unknown key \"cuont\" in roles.a b; did you mean \"count\"?"},
		{"a name twice", "roles: { a: {}, a: {} }", `1:17: roles: "a" is given twice, first on line 1`},
		{"a list instead of a mapping", "roles:\n  - a: {}", `2:3: roles: want a mapping, not a list: write the names without "-"`},
		{"a type that reads itself", "grade: 1", "1:8: grade: want a letter, not a number"},
		{"a key is missing", "strict: {}", "1:1: strict: address is missing; want text (in quotation marks if it looks like a number)"},
		{"a key is misspelled, which is not missing", "strict: { adress: a }", `1:11: unknown key "adress" in strict; did you mean "address"?`},
		{"a key is wrong, which is not missing", "strict: { address: 1 }", "1:20: strict.address: want text (in quotation marks if it looks like a number), not a number"},
		{"a section is wrong, of which no key is missing", "strict: 1", "1:9: strict: want a mapping, not a number"},
		{"an alias of nothing", "wait: *x", "1:7: wait: there is no anchor &x"},
		{"an anchor of another type", "names: &n [a]\nwait: *n", "1:11: wait: want a duration of more than zero, such as 500ms, 15s or 10m, not a list"},
		{"a merge key", "nested: { <<: *n }", "1:11: merge keys (<<) are not supported; write the keys out"},
		{"several at once", "size: x\nnested: { lwo: 1, high: x }\nnames: [[a], b]\nwait: 1", `1:7: size: "x": want a number of bytes of at least 1, such as 65536 or 64KiB
2:11: unknown key "lwo" in nested; did you mean "low"?
2:25: nested.high: "x": want a whole number of at least 1
3:9: names[0]: want text (in quotation marks if it looks like a number), not a list
4:7: wait: "1": want a duration of more than zero, such as 500ms, 15s or 10m`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := read(t, c.text); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != strings.Count(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
