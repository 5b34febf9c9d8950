package files

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar writes a node that is neither a mapping nor a list.
func (w *yamlWriter) scalar(n ast.Node) error {
	text, err := scalarJSON(n)
	w.out = append(w.out, text...)
	return err
}

// scalarJSON returns a scalar as JSON.
func scalarJSON(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.NullNode:
		return "null", nil
	case *ast.BoolNode:
		return strconv.FormatBool(n.Value), nil
	case *ast.IntegerNode:
		return integerJSON(n), nil
	case *ast.FloatNode:
		return floatJSON(n)
	case *ast.InfinityNode, *ast.NanNode:
		return "", wrong(n, "JSON has no number %s", n.GetToken().Value)
	case *ast.StringNode:
		return stringJSON(n)
	case *ast.LiteralNode:
		return quoted(n, n.Value.Value)
	case nil:
		return "null", nil
	}
	return "", wrong(n, "JSON has nothing like this: %.40q", n.GetToken().Value)
}

// integerJSON keeps the digits if they are valid in JSON, unlike 0x1F, 0o17,
// 017, +1 and 1_000.
func integerJSON(n *ast.IntegerNode) string {
	if text := n.Token.Value; json.Valid([]byte(text)) {
		return text
	}
	switch v := n.Value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	}
	return n.Token.Value
}

func floatJSON(n *ast.FloatNode) (string, error) {
	if text := decimal(strings.ReplaceAll(n.Token.Value, "_", "")); text != "" {
		return text, nil
	}
	if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
		return "", wrong(n, "JSON has no number %s", n.Token.Value)
	}
	return strconv.FormatFloat(n.Value, 'g', -1, 64), nil
}

// stringJSON returns text as a JSON string, unless it is a number for
// which the parser has no type: of many digits, or with an exponent.
func stringJSON(n *ast.StringNode) (string, error) {
	if n.Token != nil && n.Token.Type == token.StringType {
		if number := largeNumber(n.Value); number != "" {
			return number, nil
		}
	}
	return quoted(n, n.Value)
}

// largeNumber returns plain text as a JSON number, or "" if it is not one.
func largeNumber(text string) string {
	if text == "" || !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return ""
	}
	if number := decimal(text); number != "" {
		return number
	}
	const reasonable = 4096 // the time to convert grows with the square
	if len(text) > reasonable {
		return ""
	}
	if i, ok := new(big.Int).SetString(text, 0); ok {
		return i.String()
	}
	return ""
}

// decimal returns a YAML 1.2 number in base ten as a JSON number, with the
// same digits; "" if text is not one: +1.5, .5 and 5. exist in YAML alone.
func decimal(text string) string {
	if json.Valid([]byte(text)) && text[len(text)-1] <= '9' {
		return text
	}
	sign, digits := "", strings.TrimPrefix(text, "+")
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, digits = "-", rest
	}
	if len(digits) > 1 && digits[0] == '.' && '0' <= digits[1] && digits[1] <= '9' {
		digits = "0" + digits
	}
	if whole, rest, found := strings.Cut(digits, "."); found && (rest == "" || rest[0] == 'e' || rest[0] == 'E') {
		digits = whole + ".0" + rest
	}
	if digits == "" || digits[0] < '0' || digits[0] > '9' || !json.Valid([]byte(digits)) {
		return ""
	}
	return sign + digits
}

// tagged writes a value with a tag, of which JSON has only some.
func (w *yamlWriter) tagged(n *ast.TagNode) error {
	if a, ok := n.Value.(*ast.AnchorNode); ok { // !!str &x is the same as &x !!str
		inner := *n
		inner.Value = a.Value
		return w.anchor(&ast.AnchorNode{BaseNode: a.BaseNode, Start: a.Start, Name: a.Name, Value: &inner})
	}
	tag := tagName(n.Start.Value)
	switch tag {
	case "!!map", "!!seq", "!!null", "!!bool", "!!int", "!!float":
		return w.asTagged(n)
	case "!!str", "!", "!!binary", "!!timestamp":
		text, err := scalarText(n.Value)
		if err != nil {
			return err
		}
		json, err := quoted(n, text)
		w.out = append(w.out, json...)
		return err
	}
	return wrong(n, "JSON has nothing for the tag %.40s", tag)
}

// asTagged writes the value of a tag, if it has the tag's type.
func (w *yamlWriter) asTagged(n *ast.TagNode) error {
	from, tag := len(w.out), tagName(n.Start.Value)
	err := w.untagged(n)
	if err != nil || len(w.out) == from {
		return err
	}
	if !startsAs(tag, w.out[from:]) {
		return wrong(n, "this is not a value of the type %s", tag)
	}
	return nil
}

// untagged writes the value of a tag; quoted text is written as if untagged.
func (w *yamlWriter) untagged(n *ast.TagNode) error {
	if s, ok := n.Value.(*ast.StringNode); ok && strings.HasPrefix(tagName(n.Start.Value), "!!") {
		if number := largeNumber(s.Value); number != "" {
			w.out = append(w.out, number...)
			return nil
		}
	}
	if n.Value == nil {
		w.out = append(w.out, "null"...)
		return nil
	}
	return w.value(n.Value)
}

// startsAs reports whether JSON is of the type of a tag.
func startsAs(tag string, value []byte) bool {
	switch tag {
	case "!!map":
		return value[0] == '{'
	case "!!seq":
		return value[0] == '['
	case "!!null":
		return value[0] == 'n'
	case "!!bool":
		return value[0] == 't' || value[0] == 'f'
	case "!!int":
		return !strings.ContainsAny(string(value), `.eE"[{ntf`)
	}
	return value[0] == '-' || '0' <= value[0] && value[0] <= '9'
}

const noKey = "a key must be text, a number or a boolean, to be one in JSON"

// keyText returns a key as text. Numbers and booleans are written as they
// are as values; anything else is impossible in JSON.
func (w *yamlWriter) keyText(n ast.Node) (string, error) {
	switch k := n.(type) {
	case *ast.StringNode:
		if k.Value == "?" && k.Token.Type == token.StringType { // the sign of a key, without one
			break
		}
		return k.Value, checkText(k, k.Value)
	case *ast.IntegerNode:
		return integerJSON(k), nil
	case *ast.BoolNode:
		return strconv.FormatBool(k.Value), nil
	case *ast.FloatNode:
		return floatJSON(k)
	case *ast.MappingKeyNode:
		return w.keyText(k.Value)
	case *ast.LiteralNode:
		return k.Value.Value, checkText(k, k.Value.Value)
	case *ast.AnchorNode, *ast.TagNode, *ast.AliasNode:
		return w.keyOfValue(n)
	}
	return "", wrong(n, noKey)
}

// keyOfValue returns a key that may have an anchor or a tag, or be an alias. An
// anchor keeps its value, since that of a key is not in out.
func (w *yamlWriter) keyOfValue(n ast.Node) (string, error) {
	from := len(w.out)
	if err := w.value(n); err != nil {
		return "", err
	}
	value := bytes.Clone(w.out[from:])
	w.out = w.out[:from]
	if len(value) == 0 || strings.IndexByte("{[n", value[0]) >= 0 {
		return "", wrong(n, noKey)
	}
	if tag, ok := n.(*ast.TagNode); ok {
		n = tag.Value
	}
	if anchor, ok := n.(*ast.AnchorNode); ok {
		w.anchors[anchor.Name.GetToken().Value] = anchored{text: value}
	}
	if value[0] != '"' {
		return string(value), nil
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err
}

// scalarText returns the text of a scalar as written.
func scalarText(n ast.Node) (string, error) {
	switch n := n.(type) {
	case nil:
		return "", nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	}
	return "", wrong(n, "want text behind this tag")
}

// quoted returns text as a JSON string.
func quoted(n ast.Node, text string) (string, error) {
	return string(appendQuoted(nil, text)), checkText(n, text)
}

// checkText rejects binary content.
func checkText(n ast.Node, text string) error {
	if !utf8.ValidString(text) {
		return wrong(n, "this text is not UTF-8")
	}
	return nil
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends a JSON string with only the escapes that JSON requires.
func appendQuoted(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\t':
			out = append(out, '\\', 't')
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
