package files

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/lexer"
	"github.com/watchtide/watchtide/stream"
)

const testLimit = 1 << 20

func TestYAML(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"order of keys", "z: 1\na: 2\nm: {y: 1, b: 2}\n", `{"z":1,"a":2,"m":{"y":1,"b":2}}`},
		{"lists", "- 1\n- [a, [b], {c: d}]\n-\n- {}\n- []\n- - x\n  - y\n", `[1,["a",["b"],{"c":"d"}],null,{},[],["x","y"]]`},
		{"one word", "hello world", `"hello world"`},
		{"JSON", `{"a": [1, 2.50, "x\ty", null, true, 1e400, 12345678901234567890123], "b": {}}`,
			`{"a":[1,2.50,"x\ty",null,true,1e400,12345678901234567890123],"b":{}}`},
		{"integers", "[0, -0, 12, -12, +12, 9007199254740993, 18446744073709551616, -170141183460469231731687303715884105728]",
			"[0,-0,12,-12,12,9007199254740993,18446744073709551616,-170141183460469231731687303715884105728]"},
		{"integers in other bases", "[0x1F, -0x1f, 0o17, 0b101, 1_000, 0644, 0xFFFFFFFFFFFFFFFFFFFF]",
			"[31,-31,15,5,1000,420,1208925819614629174706175]"},
		{"numbers with a point", "[1.50, .5, -.5, 5., +1.5, 1e3, 12E03, 1.5e-400, 1_0.5, 5.e2, 0.1e-7]",
			"[1.50,0.5,-0.5,5.0,1.5,1e3,12E03,1.5e-400,10.5,5.0e2,0.1e-7]"},
		{"not a number", "[08, 1.2.3, 1e, e3, -, +, ., 0x, 1-2, 10:30, 2026-11-20, '12', \"12\", 1 2, ++1, -+1]",
			`["08","1.2.3","1e","e3","-","+",".","0x","1-2","10:30","2026-11-20","12","12","1 2","++1","-+1"]`},
		{"words", "[~, null, Null, NULL, true, True, TRUE, false, yes, no, on, off, y, n, nil, none, 'true', \"null\"]",
			`[null,null,null,null,true,true,true,false,"yes","no","on","off","y","n","nil","none","true","null"]`},
		{"text with escapes", `["\u00e9\x41\t\n\"\\\/", 'it''s', "\u2028", <&>]`, "[\"éA\\t\\n\\\"\\\\/\",\"it's\",\"\u2028\",\"<&>\"]"},
		{"blocks of text", "a: |\n  x\n   y\nb: >\n  p\n  q\nc: |-\n  z\n", `{"a":"x\n y\n","b":"p q\n","c":"z"}`},
		{"keys of other types", "80: a\ntrue: b\n1.50: c\n0x10: d\n? k\n: e\n'80 ': f\n!!str g: h\n", `{"80":"a","true":"b","1.50":"c","16":"d","k":"e","80 ":"f","g":"h"}`},
		{"anchors", "a: &x {b: &y [1, 2]}\nc: *x\nd: [*y, &z 3, *z]\n", `{"a":{"b":[1,2]},"c":{"b":[1,2]},"d":[[1,2],3,3]}`},
		{"an anchor that is set again", "[&a 1, *a, &a 2, *a]", "[1,1,2,2]"},
		{"merge keys", "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  w: 0\n  <<: [*a, *b]\n  x: 9\nd: {<<: *b}\n",
			`{"a":{"x":1,"y":1},"b":{"y":2,"z":2},"c":{"w":0,"y":1,"z":2,"x":9},"d":{"y":2,"z":2}}`},
		{"merged twice", "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, z: 3}\n", `{"a":{"x":1},"b":{"x":1,"y":2},"c":{"x":1,"y":2,"z":3}}`},
		{"a key of two smaller signs", "'<<': 1", `{"<<":1}`},
		{"tags", "[!!str 12, !!int \"3\", !!float 3, !!bool true, !!null ~, !!map {a: 1}, !!seq [1], !!binary aGVsbG8=, !!timestamp 2026-11-20, ! 12, &a !!str 5, *a]",
			`["12",3,3,true,null,{"a":1},[1],"aGVsbG8=","2026-11-20","12","5","5"]`},
		{"tags without content", "k: !!str\nl:\n  - !!str # nothing\n  - !!null\n  - m: !!str\n    n: ! \no: !!str &x\np: &y !!str\nq: [!!str , *x, *y]\nr:\n  !!str\ns: !!str\n  text\n",
			`{"k":"","l":["",null,{"m":"","n":""}],"o":"","p":"","q":["","",""],"r":"","s":"text"}`},
		{"a tag before an anchor", "a: !!str &x foo\nb: *x\nc: !!int &y 3\nd: *y\n", `{"a":"foo","b":"foo","c":3,"d":3}`},
		{"a tag in full", "a: !<tag:yaml.org,2002:str> 12\n", `{"a":"12"}`},
		{"keys with anchors, aliases and tags", "&k key: v\nother: *k\na: &x\n  b: &y c\n*y : 1\n&n 80: *n\n!!str 90: z\n!!int \"91\": z\n",
			`{"key":"v","other":"key","a":{"b":"c"},"c":1,"80":80,"90":"z","91":"z"}`},
		{"merged here", "x: &d {a: 1}\ny:\n  <<: [*d, {b: &b 2, a: 3}]\nz:\n  c: 4\n  <<: {c: 3, e: 5, <<: {e: 6, f: 7}}\nv: *b\n",
			`{"x":{"a":1},"y":{"a":1,"b":2},"z":{"c":4,"e":5,"f":7},"v":2}`},
		{"a zero byte in text", `a: "x\0"`, `{"a":"x\u0000"}`},
		{"a last line of spaces", "a: |\n  x\n   ", `{"a":"x\n \n"}`},
		{"comments and marks", "%YAML 1.2\n--- # begin\na: 1 # one\n# two\nb: 2\n...\n", `{"a":1,"b":2}`},
		{"a document and nothing", "a: 1\n---\n# nothing\n", `{"a":1}`},
		{"a byte order mark", "\ufeffa: 1\n", `{"a":1}`},
		{"lines of Windows", "a: x\r\nb:\r\n  - y\r\n", `{"a":"x","b":["y"]}`},
		{"null", "null", "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode(yamlFormat, []byte(c.yaml), testLimit)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestYAMLErrors(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"two documents", "a: 1\n---\nb: 2\n", "3:1: a second document begins here; want one in a file"},
		{"only a comment", "# nothing\n", "1:1: the file holds no value; write null if that is meant"},
		{"a key twice", "a: 1\nb:\n  c: 1\n  \"c\": 2\n", `4:3: the key "c" stands here a second time; it is on line 3 already`},
		{"a key twice as JSON", "80: 1\n\"80\": 2\n", `2:1: the key "80" stands here a second time; it is on line 1 already`},
		{"<< twice", "a: &a {}\nb:\n  <<: *a\n  <<: *a\n", "4:3: the key << stands here a second time; give it a list"},
		{"<< of a list", "a: &a [1]\nb: {<<: *a}\n", "2:9: << takes the entries of a mapping, which this is not"},
		{"<< of a text", "b: {<<: a}\n", "1:9: want a mapping, an alias, or a list of them, behind <<"},
		{"a key twice behind <<", "b: {<<: {a: 1, a: 2}}\n", `1:16: the key "a" stands here a second time; it is on line 1 already`},
		{"an alias as a key twice", "&a a: 1\n*a : 2\n", `2:1: the key "a" stands here a second time; it is on line 1 already`},
		{"an alias of a list as a key", "a: &a [1]\n*a : 2\n", "2:1: a key must be text"},
		{"no key in braces", "{a: 1, : b}\n", "1:8: a key must be text"},
		{"no key on a line", "? a\n: b\n: c\n", "3:1: a key must be text"},
		{"infinity", "a: .inf", "1:4: JSON has no number .inf"},
		{"not a number", "a: [1, .nan]", "1:8: JSON has no number .nan"},
		{"a list as a key", "? [a]\n: b\n", "2:1: not YAML: found an invalid key"},
		{"a list as a key in braces", "{[a]: b}\n", "1:5: not YAML: found an invalid key"},
		{"null as a key", "~: b\n", "1:1: a key must be text, a number or a boolean, to be one in JSON"},
		{"unknown anchor", "a: *x\nb: &x 1\n", "1:4: no anchor &x stands before this alias"},
		{"alias to itself", "a: &x [1, *x]\n", "1:11: the alias *x leads to itself"},
		{"tag of one's own", "a: !secret x\n", "1:4: JSON has nothing for the tag !secret"},
		{"tag that is wrong", "a: !!int x\n", "1:4: this is not a value of the type !!int"},
		{"tag of text on a list", "a: !!str [x]\n", "1:9: not YAML: "},
		{"tab", "a:\n\t- b", "2:1: not YAML: "},
		{"bracket", "a: {b: 1\n", "1:4: not YAML: could not find flow mapping end token '}'"},
		{"zero byte", "a: x\x00\n", "1:5: a byte of value 0 stands here; want text"},
		{"no UTF-8", "a: 1\nb: \xff\n", "2:4: this is not UTF-8"},
		{"UTF-16", "\xff\xfea\x00:\x00", "1:1: this is not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode(yamlFormat, []byte(c.yaml), testLimit)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %s, error %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestYAMLThatCosts: text that would take the parser minutes is rejected before
// the parser runs.
func TestYAMLThatCosts(t *testing.T) {
	for name, text := range map[string]string{
		"many keys":       strings.Repeat("k:\n", 30_000),
		"open brackets":   strings.Repeat("[", 30_000),
		"open braces":     strings.Repeat("{a: ", 10_000),
		"dashes":          strings.Repeat("- ", 30_000),
		"questions":       strings.Repeat("? ", 30_000),
		"anchors":         strings.Repeat("&a ", 30_000),
		"anchors in list": "[" + strings.Repeat("&a ", 30_000) + "]",
		"quotes":          strings.Repeat(`"" `, 30_000),
		"aliases":         strings.Repeat("*a ", 30_000),
		"tags":            strings.Repeat("!!str ", 30_000),
	} {
		if err := affordable(lexer.Tokenize(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, text := range map[string]string{
		"a list on one line": "[" + strings.Repeat("a, ", 10_000) + "]",
		"a list on lines":    strings.Repeat("- a\n", 10_000),
		"objects":            strings.Repeat("- {a: 1, b: [x]}\n", 5000),
		"nested":             strings.Repeat("[", 900) + strings.Repeat("]", 900),
	} {
		if err := affordable(lexer.Tokenize(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBillionLaughs: a small file with a large value.
func TestBillionLaughs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	value, err := decode(yamlFormat, []byte(laughs.String()), testLimit)
	if err == nil || !strings.Contains(err.Error(), "with its aliases filled in") {
		t.Errorf("a value of %d bytes, and the error %v", len(value), err)
	}
}

// TestManyMerges: a small file whose aliases name many entries many times.
func TestManyMerges(t *testing.T) {
	var text strings.Builder
	text.WriteString("a: &a\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "  k%d: 1\n", i)
	}
	text.WriteString("b:\n  <<: [" + strings.Repeat("*a, ", 2000) + "]\n")
	_, err := decode(yamlFormat, []byte(text.String()), testLimit)
	if err == nil || !strings.Contains(err.Error(), "<< looks at more than") {
		t.Errorf("got the error %v", err)
	}
}

// FuzzYAML: whatever the text is, the result is a value that is JSON on one
// line, or an error with a position.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [x, 1.50, ~, 0x1F]\n", "a: &x {b: 1}\nc: {<<: *x}\n", "? [a]\n: b\n", "a: |\n  x\n", "--- 1\n--- 2\n",
		`{"a": [1, 1e400, "\ud83d\ude00"]}`, "!!int x", "a: !!str", "&a", "*a", "<<: *a", "- - -", "\ufeff", "%YAML 1.2", "a: >\n\n x",
		"!!map", "? ", "! ", "a: &b !!null", "[&x , *x]", "{? a}", "a: 'x\n\n y'", "\"\\0\"", "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// A hanging parser would silently hang the fuzzer too.
		hangs := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("hangs on %q", text)) })
		value, err := decode(yamlFormat, text, 1<<16)
		hangs.Stop()
		if err != nil {
			if _, placed := err.(*placedError); !placed {
				t.Errorf("error %v has no position", err)
			}
			return
		}
		line, ok := stream.CompactJSON(value)
		if !ok || string(line) != string(value) {
			t.Errorf("%q became %q, which is not JSON on one line", text, value)
		}
	})
}

// FuzzJSON: JSON has the same value as YAML, and the same as in the standard
// library, if it is valid.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0,2.50,1e400,1E-7],"b":{"c":null,"d":"x\u2028\/"}}`, `"a: b"`, `"\ud83d\ude00"`, `[true,false,"",{}]`, `1e5`, `"\b\f"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := decode(jsonFormat, text, testLimit)
		if ok := json.Valid(text); ok != (err == nil) && stringIsText(text) {
			t.Fatalf("%q: valid is %v, and the error %v", text, ok, err)
		}
		if err == nil && !json.Valid(value) {
			t.Fatalf("%q became %q", text, value)
		}
	})
}

func stringIsText(text []byte) bool {
	return invalidUTF8(text) < 0 && len(strings.TrimSpace(string(text))) > 0 && !strings.HasPrefix(string(text), byteOrderMark)
}
