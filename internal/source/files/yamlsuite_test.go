package files

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
)

// suiteCase is a case of the YAML test suite.
type suiteCase struct {
	ID, Name, YAML string
	JSON           *string // the values of its documents, unless JSON has none
	Invalid        bool
}

// refused are the valid documents that are refused, with the reason.
var refused = map[string][]string{
	"a second document begins here": {"6ZKB", "7Z25", "9DXL", "9KAX", "JHB9", "KSS4", "L383", "RZT7", "U9NS", "6WLZ", "35KP", "5TYM", "9WXW"},
	"the file holds no value":       {"6XDY", "8G76", "98YD", "DK95/07", "HWV9", "MUS6/02", "MUS6/03", "MUS6/04", "MUS6/05", "MUS6/06", "QT73"},
	"the file is empty":             {"AVM7"},
	"JSON has nothing for the tag":  {"2XXW", "6CK3", "C4HZ", "CC74", "CUP7", "J7PZ", "M5C3", "U3C3", "UGM3", "Z67P", "Z9M4", "7FWL"},
	"not a value of the type":       {"P76L"},
	"an implicit line break":        {"4MUZ/02", "VJP3/01"},
	"that cannot start any token":   {"DK95/04"},
	"could not find multi-line":     {"M7A3"},
}

// accepted are the documents that are accepted although the suite has no value
// for them in JSON. But for the first two it says that they are invalid; the
// parsers of Kubernetes accept those as well.
var accepted = map[string]string{
	"4ABK":     `{"unquoted":"separate","http://foo.com":null,"omitted value":null}`,
	"UKK6/02":  `""`,
	"9C9N":     `{"flow":["a","b","c"]}`,
	"9JBA":     `["a","b","c"]`,
	"CVW2":     `["a","b","c"]`,
	"G5U8":     `[["-","-"]]`,
	"QB6E":     `{"quoted":"a b c"}`,
	"SU5Z":     `{"key":"value"}`,
	"Y79Y/003": `[["foo","foo"]]`,
	"YJV2":     `["-"]`,
}

// TestYAMLTestSuite: each document of the public YAML test suite has the value
// that the suite has for it, or is refused with an error.
func TestYAMLTestSuite(t *testing.T) {
	f, err := os.Open("testdata/yaml-test-suite/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		var c suiteCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		t.Run(c.ID, c.test)
	}
	if err := lines.Err(); err != nil || n != 402 {
		t.Errorf("%d cases, want 402; error %v", n, err)
	}
}

func (c suiteCase) test(t *testing.T) {
	value, err := decode(yamlFormat, []byte(c.YAML), testLimit)
	want := c.wantError()
	switch {
	case accepted[c.ID] != "":
		if err != nil || string(value) != accepted[c.ID] {
			t.Errorf("%s: got %s, error %v, want %s", c.Name, value, err, accepted[c.ID])
		}
	case c.Invalid || c.JSON == nil || want != "":
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q became %s, error %v, want the error %q", c.Name, c.YAML, value, err, want)
		}
	case err != nil:
		t.Errorf("%s: %v in %q", c.Name, err, c.YAML)
	default:
		c.compare(t, value)
	}
}

func (c suiteCase) wantError() string {
	for message, ids := range refused {
		for _, id := range ids {
			if id == c.ID {
				return message
			}
		}
	}
	return ""
}

// compare compares the value with that of the first document. The others of a
// case that is not refused are empty.
func (c suiteCase) compare(t *testing.T, value []byte) {
	var got, want, other any
	if err := json.Unmarshal(value, &got); err != nil {
		t.Fatal(err)
	}
	documents := json.NewDecoder(strings.NewReader(*c.JSON))
	if err := documents.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %q became %s, want %s", c.Name, c.YAML, value, *c.JSON)
	}
	for {
		if err := documents.Decode(&other); errors.Is(err, io.EOF) {
			return
		} else if err != nil || other != nil {
			t.Fatalf("%s: another document, %v, is left out; error %v", c.Name, other, err)
		}
	}
}
