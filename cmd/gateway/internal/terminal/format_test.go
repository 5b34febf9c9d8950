package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// form returns the form that a value of --output names.
func form(t *testing.T, value string) (Format, error) {
	t.Helper()
	var f Flag
	c := &cobra.Command{}
	f.Register(c, TableFormat, JSON, NDJSON, YAML, JSONPath)
	if err := c.Flags().Parse([]string{"--output", value}); err != nil {
		t.Fatal(err)
	}
	return f.Format(TableFormat)
}

const document = `{"watch":"w","big":18446744073709551616,"resources":[{"key":"b","n":9007199254740993,"x":0.10,"on":"yes"},{"key":"a","n":2,"deep":{"s":"<é>"}}],"none":{}}`

func TestForms(t *testing.T) {
	for value, want := range map[string]string{
		"ndjson": document + "\n",
		"yaml": `watch: w
big: 18446744073709551616
resources:
  - key: b
    "n": 9007199254740993
    x: 0.10
    "on": "yes"
  - key: a
    "n": 2
    deep:
      s: "<é>"
none: {}
`,
		`jsonpath={.resources[*].key}`: "b a\n",
		`jsonpath=.watch`:              "w\n",
		`jsonpath=watch`:               "w\n",
		`jsonpath={range .resources[*]}{.key}={.n}{"\n"}{end}`: "b=9007199254740993\na=2\n",
		`jsonpath={.resources[?(@.n>5)].key}`:                  "b\n",
		`jsonpath={.big}`:                                      "18446744073709551616\n",
		`jsonpath={.nowhere}`:                                  "\n",
		`jsonpath={.resources[1].deep}`:                        `{"s":"\u003cé\u003e"}` + "\n",
	} {
		f, err := form(t, value)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		for range 2 { // a template may be used again
			if got, err := f.Bytes([]byte(document)); err != nil || string(got) != want {
				t.Errorf("%s: got\n%s%v, want\n%s", value, got, err, want)
			}
		}
	}
	f, _ := form(t, "json")
	if got, err := f.Bytes([]byte(`{"a":{"b":1.50}}`)); err != nil || string(got) != "{\n  \"a\": {\n    \"b\": 1.50\n  }\n}\n" {
		t.Errorf("json: got %s, %v", got, err)
	}
}

// TestYAMLOfRepeatedMembers: YAML refuses a member that stands there twice.
func TestYAMLOfRepeatedMembers(t *testing.T) {
	f, _ := form(t, "yaml")
	got, err := f.Bytes([]byte(`{"a":1,"b":{"c":[1],"c":{"d":2,"d":3}},"a":"x"}`))
	if want := "a: x\nb:\n  c:\n    d: 3\n"; err != nil || string(got) != want {
		t.Errorf("got\n%s%v, want\n%s", got, err, want)
	}
}

// TestYAMLOfLoneSurrogates: JSON can have them, and YAML cannot.
func TestYAMLOfLoneSurrogates(t *testing.T) {
	f, _ := form(t, "yaml")
	for text, escape := range map[string]string{
		`\ud800`: `\ud800`, `a\uDC00b`: `\uDC00`, `\ud83d\ud83d\ude00`: `\ud83d`, `\\\udfff`: `\udfff`, `\ud83d\n`: `\ud83d`,
	} {
		for _, document := range []string{`{"a":"` + text + `"}`, `{"` + text + `":1}`} {
			got, err := f.Bytes([]byte(document))
			if want := escape + ", half of a pair of surrogates: want --output json"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, %v, want %s", document, got, err, want)
			}
		}
	}
	for text, want := range map[string]string{
		`\ud83d\ude00`: "😀", `\\ud800`: `\ud800`, `\ufffd`: "\ufffd",
	} {
		got, err := f.Bytes([]byte(`"` + text + `"`))
		var read string
		if err == nil {
			err = yaml.Unmarshal(got, &read)
		}
		if err != nil || read != want {
			t.Errorf("%s: got %q, %v, want %q", text, read, err, want)
		}
	}
}

func TestFormsThatAreNone(t *testing.T) {
	for value, want := range map[string]string{
		"xml":            `--output "xml": want table, json, ndjson, yaml or jsonpath=TEMPLATE`,
		"json=x":         "want table, json",
		"jsonpath":       "want table, json",
		"jsonpath=":      "jsonpath=TEMPLATE",
		"jsonpath={.a[}": `--output "jsonpath={.a[}": `,
	} {
		if _, err := form(t, value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
	if f, err := form(t, ""); err != nil || f.Name != TableFormat {
		t.Errorf("none: got %v, %v", f, err)
	}
}

// Nothing that a value contains is interpreted by a terminal; a pipe gets it as it is.
func TestTerminalsGetNoEscapes(t *testing.T) {
	const hostile = `{"a":"\u001b[31m` + "\u009b" + `"}`
	screen := Terminal{Size: func() (int, int, error) { return 80, 24, nil }}
	for _, value := range []string{"json", "yaml", "jsonpath=.a"} {
		f, err := form(t, value)
		if err != nil {
			t.Fatal(err)
		}
		var shown, piped bytes.Buffer
		if err := f.Print(&shown, []byte(hostile), screen); err != nil {
			t.Error(err)
		}
		if err := f.Print(&piped, []byte(hostile), Terminal{}); err != nil {
			t.Error(err)
		}
		if strings.ContainsAny(shown.String(), "\x1b\u009b") || !strings.Contains(shown.String(), "[31m") {
			t.Errorf("%s: %q is shown", value, shown.String())
		}
		if value == "jsonpath=.a" && piped.String() != "\x1b[31m\u009b\n" {
			t.Errorf("%s: a pipe gets %q", value, piped.String())
		}
	}
}

// FuzzYAML: YAML means what the JSON meant, every digit included.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{document, `"yes"`, `["1","null","~","1e3","0x1",".nan","2026-01-02"," a ","a: b","- x","#","\u0085\u2028\ufeff\u0000"]`, `{"":{"\n":[]},"<<":1,"=":2}`, `-0`, `1e400`, `"é\ud800"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		converted, err := toYAML([]byte(text))
		if loneSurrogate([]byte(text)) != "" {
			if err == nil {
				t.Fatalf("%q became %q", text, converted)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var node yaml.Node
		if err := yaml.Unmarshal(converted, &node); err != nil {
			t.Fatalf("%q is no YAML: %v", converted, err)
		}
		got, want := asJSON(t, node.Content[0]), canonical(t, text)
		if got != want {
			t.Fatalf("%q became\n%s, which means\n%s, want\n%s", text, converted, got, want)
		}
	})
}

// canonical returns JSON without white space, and with one form of each string.
func canonical(t *testing.T, text string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	n, err := nodeOf(decoder)
	if err != nil {
		t.Fatal(err)
	}
	return n.json(t)
}

// json returns a value without white space.
func (n node) json(t *testing.T) string {
	t.Helper()
	var parts []string
	for i, v := range n.values {
		if n.keys != nil {
			parts = append(parts, node{text: n.keys[i], quotes: true}.json(t))
		}
		parts = append(parts, v.json(t))
	}
	switch {
	case n.keys != nil:
		return "{" + strings.Join(parts, ",") + "}"
	case n.values != nil:
		return "[" + strings.Join(parts, ",") + "]"
	case n.quotes:
		text, _ := json.Marshal(n.text)
		return string(text)
	}
	return n.text
}

// asJSON returns what a node means as JSON: a text is one exactly if YAML resolves it so.
func asJSON(t *testing.T, n *yaml.Node) string {
	t.Helper()
	var parts []string
	for _, c := range n.Content {
		parts = append(parts, asJSON(t, c))
	}
	switch n.Kind {
	case yaml.SequenceNode:
		return "[" + strings.Join(parts, ",") + "]"
	case yaml.MappingNode:
		return "{" + strings.Join(parts, ",") + "}"
	}
	if n.Style == 0 && json.Valid([]byte(n.Value)) {
		return n.Value // a number that is too large for the reader is still one
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
		return n.Value
	case "!!str":
		text, _ := json.Marshal(n.Value)
		return string(text)
	}
	return n.ShortTag() + n.Value
}
