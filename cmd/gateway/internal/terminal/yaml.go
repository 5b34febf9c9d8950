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

	"go.yaml.in/yaml/v3"
)

// toYAML returns a JSON document as YAML.
func toYAML(document []byte) ([]byte, error) {
	if escape := loneSurrogate(document); escape != "" {
		return nil, fmt.Errorf(`YAML has no text with %s, half of a pair of surrogates: want --output json`, escape)
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	node, err := nodeOf(decoder)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// nodeOf returns the next value of a decoder. A scalar has the text that it has in JSON, so that
// no digit is lost.
func nodeOf(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return collection(decoder, v)
	case string:
		return yamlText(v), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
}

// collection returns the rest of an object or of an array.
func collection(decoder *json.Decoder, begin json.Delim) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode}
	if begin == '{' {
		node.Kind = yaml.MappingNode
	}
	values := map[string]int{} // where in the content the values of members are
	for decoder.More() {
		next, err := nodeOf(decoder)
		if err != nil {
			return nil, err
		}
		if begin == '[' {
			node.Content = append(node.Content, next)
			continue
		}
		value, err := nodeOf(decoder)
		if err != nil {
			return nil, err
		}
		// YAML takes a member once. Of several the last counts, as for JSON.parse.
		if at, repeated := values[next.Value]; repeated {
			node.Content[at] = value
			continue
		}
		node.Content = append(node.Content, next, value)
		values[next.Value] = len(node.Content) - 1
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	_, err := decoder.Token()
	return node, err
}

// plain are texts that every version of YAML takes for texts without quotation marks, unless
// they are one of words.
var plain = regexp.MustCompile(`^[A-Za-z_/]([A-Za-z0-9_./ -]*[A-Za-z0-9_./-])?$`)

// words mean something else in some version of YAML.
var words = []string{"y", "yes", "n", "no", "on", "off", "true", "false", "null"}

// yamlText returns a string, in quotation marks wherever YAML could take it for something else.
func yamlText(s string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if !plain.MatchString(s) || slices.Contains(words, strings.ToLower(s)) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
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
