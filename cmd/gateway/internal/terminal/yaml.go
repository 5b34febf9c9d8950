package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// toYAML returns a JSON document as YAML.
func toYAML(document []byte) ([]byte, error) {
	if escape := loneSurrogate(document); escape != "" {
		return nil, fmt.Errorf(`YAML has no text with %s, half of a pair of surrogates: want --output json`, escape)
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	n, err := nodeOf(decoder)
	if err != nil {
		return nil, err
	}
	return append(n.append(nil, 0), '\n'), nil
}

// node is a JSON value.
type node struct {
	text   string   // of a scalar; one that is no string has the text that it has in JSON, so that no digit is lost
	quotes bool     // it is a string
	keys   []string // of an object
	values []node   // of an object or an array; nil: it is empty, or a scalar
}

// nodeOf returns the next value of a decoder.
func nodeOf(decoder *json.Decoder) (node, error) {
	token, err := decoder.Token()
	if err != nil {
		return node{}, err
	}
	switch v := token.(type) {
	case json.Delim:
		return collection(decoder, v)
	case string:
		return node{text: v, quotes: true}, nil
	case nil:
		return node{text: "null"}, nil
	}
	return node{text: fmt.Sprint(token)}, nil
}

// collection returns the rest of an object or of an array.
func collection(decoder *json.Decoder, begin json.Delim) (node, error) {
	n := node{text: string(begin) + string(begin+2)} // the brackets of an empty one
	at := map[string]int{}                           // where the members are
	for decoder.More() {
		next, err := nodeOf(decoder)
		if err != nil {
			return n, err
		}
		if begin == '[' {
			n.values = append(n.values, next)
			continue
		}
		value, err := nodeOf(decoder)
		if err != nil {
			return n, err
		}
		// YAML takes a member once. Of several the last counts, as for JSON.parse.
		if i, repeated := at[next.text]; repeated {
			n.values[i] = value
			continue
		}
		at[next.text] = len(n.keys)
		n.keys, n.values = append(n.keys, next.text), append(n.values, value)
	}
	_, err := decoder.Token()
	return n, err
}

// append appends a value, each further line of which is indented.
func (n node) append(out []byte, indent int) []byte {
	if n.values == nil {
		return n.appendScalar(out)
	}
	for i, v := range n.values {
		if i > 0 {
			out = appendLine(out, indent)
		}
		if n.keys == nil {
			out = v.append(append(out, "- "...), indent+2)
			continue
		}
		out = appendKey(out, n.keys[i], indent)
		if v.values == nil {
			out = v.append(append(out, ' '), indent)
			continue
		}
		out = v.append(appendLine(out, indent+2), indent+2)
	}
	return out
}

func appendLine(out []byte, indent int) []byte {
	return append(append(out, '\n'), strings.Repeat(" ", indent)...)
}

// longKey is how many bytes a key has that stands on a line of its own. YAML allows 1,024 characters
// for the others.
const longKey = 128

// appendKey appends a key and a colon.
func appendKey(out []byte, key string, indent int) []byte {
	name := node{text: key, quotes: true}
	if len(key) <= longKey {
		return append(name.appendScalar(out), ':')
	}
	return append(appendLine(name.appendScalar(append(out, "? "...)), indent), ':')
}

// plain are texts that every version of YAML takes for texts without quotation marks, unless
// they are one of words.
var plain = regexp.MustCompile(`^[A-Za-z_/]([A-Za-z0-9_./ -]*[A-Za-z0-9_./-])?$`)

// words mean something else in some version of YAML.
var words = []string{"y", "yes", "n", "no", "on", "off", "true", "false", "null"}

// appendScalar appends a scalar: a string in quotation marks wherever YAML could take it for something
// else. The escapes of Go are among those of YAML.
func (n node) appendScalar(out []byte) []byte {
	if n.quotes && (!plain.MatchString(n.text) || slices.Contains(words, strings.ToLower(n.text))) {
		return strconv.AppendQuote(out, n.text)
	}
	return append(out, n.text...)
}

// loneSurrogate returns the first escape in a JSON document that is half of a pair of surrogates
// without the other half; "": there is none. A decoder makes U+FFFD of it.
func loneSurrogate(document []byte) string {
	for {
		_, rest, found := bytes.Cut(document, []byte(`\`))
		if !found || len(rest) == 0 {
			return ""
		}
		document = rest[1:]
		r := escaped(rest)
		if !utf16.IsSurrogate(r) {
			continue
		}
		if len(rest) < 6 || rest[5] != '\\' || utf16.DecodeRune(r, escaped(rest[6:])) == utf8.RuneError {
			return `\` + string(rest[:5])
		}
		document = rest[11:]
	}
}

// escaped returns the character of uXXXX, with which a text begins; 0: it does not.
func escaped(text []byte) rune {
	if len(text) < 5 || text[0] != 'u' {
		return 0
	}
	r, _ := strconv.ParseUint(string(text[1:5]), 16, 16)
	return rune(r)
}
