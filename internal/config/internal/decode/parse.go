package decode

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// YAMLMistake says why a text is not one YAML document.
type YAMLMistake struct {
	Line, Column int // from 1
	Message      string
}

// ParseYAML returns the root of the document, and the value of each anchor: of duplicates, the last
// one. The root is nil if the document is empty. It may be returned together with a mistake.
// Duplicate keys are not a mistake here.
func ParseYAML(data []byte) (root ast.Node, anchors map[string]ast.Node, m *YAMLMistake) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors start a file with it
	if !utf8.Valid(data) {
		return nil, nil, &YAMLMistake{1, 1, "the file is not UTF-8"}
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, nil, syntaxError(err, data)
	}
	if len(file.Docs) > 1 && file.Docs[1].Body != nil {
		at := Position(file.Docs[1].Body)
		m = &YAMLMistake{at.Line, at.Column, "a second document begins here; want one"}
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, nil, m
	}
	found := anchorVisitor{}
	ast.Walk(found, file.Docs[0].Body)
	return file.Docs[0].Body, found, m
}

func syntaxError(err error, data []byte) *YAMLMistake {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
		message, _, _ := strings.Cut(err.Error(), "\n")
		return &YAMLMistake{1, 1, "not YAML: " + message}
	}
	at := syntax.Token.Position
	return &YAMLMistake{at.Line, at.Column, "not YAML: " + syntax.Message + hint(syntax.Message, line(data, at.Line))}
}

// hint suggests a correction for the mistakes that the parser reports in its own
// terms.
func hint(message, line string) string {
	switch {
	case strings.Contains(line, "${"): // its braces end a plain word
		return `; inside of {} and [] write "${NAME}" in quotation marks`
	case strings.Contains(message, `'\t'`), strings.Contains(message, "'\t'"):
		return "; indent with spaces"
	case strings.Contains(message, "mapping value is not allowed"):
		return "; are there two keys on this line, or is the next one indented too far?"
	case strings.Contains(message, "value is not allowed"):
		return "; is this line indented like the one before, and is each brace closed once?"
	case strings.Contains(message, "non-map value"):
		return "; want a key, a colon, a space and a value"
	}
	return ""
}

// line returns the line with the number, from 1.
func line(data []byte, number int) string {
	lines := strings.Split(string(data), "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

type anchorVisitor map[string]ast.Node

// Visit records the node if it is an anchor.
func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		v[a.Name.GetToken().Value] = a.Value
	}
	return v
}
