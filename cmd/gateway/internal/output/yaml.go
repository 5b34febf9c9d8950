package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// toYAML returns a JSON document as YAML.
func toYAML(document []byte) ([]byte, error) {
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
		return text(v), nil
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
	for decoder.More() {
		next, err := nodeOf(decoder) // the name of a member is a value too
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, next)
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

// text returns a string, in quotation marks wherever YAML could take it for something else.
func text(s string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if !plain.MatchString(s) || slices.Contains(words, strings.ToLower(s)) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
