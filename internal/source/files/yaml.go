package files

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// fromYAML returns the one document of the text as JSON: keys in their order,
// numbers with all of their digits.
func fromYAML(text []byte, limit int64) (value []byte, err error) {
	// The parser is third-party code, and its input may be anything.
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, &placedError{1, 1, fmt.Sprintf("not YAML that can be read: %v", p)}
		}
	}()
	tokens := lexer.Tokenize(withLastLine(string(text)))
	if err := affordable(tokens); err != nil {
		return nil, err
	}
	if at := bytes.IndexByte(text, 0); at >= 0 {
		return nil, placed(text, at, "a byte of value 0 stands here; want text")
	}
	if t := withoutKey(tokens); t != nil {
		return nil, &placedError{t.Position.Line, t.Position.Column, noKey}
	}
	// Duplicate keys are found when they are written.
	file, err := parser.Parse(withContent(tokens), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlError(err)
	}
	document, err := onlyDocument(file)
	if err != nil {
		return nil, err
	}
	w := &yamlWriter{limit: limit, anchors: map[string]anchored{}}
	if err := w.value(document); err != nil {
		return nil, err
	}
	return w.out, nil
}

// withLastLine ends a last line of nothing but spaces, which belongs to a block
// of text before it.
func withLastLine(text string) string {
	if last := text[strings.LastIndexByte(text, '\n')+1:]; last != "" && strings.Trim(last, " ") == "" {
		return text + "\n"
	}
	return text
}

// onlyDocument returns the body of the single document that a file may have.
func onlyDocument(file *ast.File) (ast.Node, error) {
	var document ast.Node
	for _, d := range file.Docs {
		switch d.Body.(type) {
		case nil:
			continue
		case *ast.DirectiveNode: // %YAML 1.2
			continue
		}
		if document != nil {
			return nil, wrong(d.Body, "a second document begins here; want one in a file")
		}
		document = d.Body
	}
	if document == nil {
		return nil, &placedError{1, 1, "the file holds no value; write null if that is meant"}
	}
	return document, nil
}

func yamlError(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil && syntax.Token.Position != nil {
		at := syntax.Token.Position
		return &placedError{max(at.Line, 1), max(at.Column, 1), "not YAML: " + syntax.Message}
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	return &placedError{1, 1, "not YAML: " + message}
}

// wrong is an error at a node.
func wrong(n ast.Node, format string, args ...any) *placedError {
	e := &placedError{1, 1, fmt.Sprintf(format, args...)}
	if at := beginning(n); at != nil {
		e.line, e.column = max(at.Line, 1), max(at.Column, 1)
	}
	return e
}

// beginning returns where a node begins. The token of a block mapping is its
// first ':', which is not the place to report.
func beginning(n ast.Node) *token.Position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return beginning(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return beginning(n.Key)
	}
	if tk := n.GetToken(); tk != nil {
		return tk.Position
	}
	return nil
}

const (
	maxYAMLKeys  = 20_000
	maxFlowDepth = 1000
	// maxRun is how many tokens may follow one another without an end of the
	// line, or within brackets without a bracket or a comma.
	maxRun = 100
)

// affordable rejects text that would take the parser minutes: its time grows
// with the square of some numbers, and a file must not hold up the others.
func affordable(tokens token.Tokens) error {
	var keys, depth, run, line int
	for _, t := range tokens {
		run++
		switch t.Type {
		case token.MappingValueType:
			keys++
		case token.SequenceStartType, token.MappingStartType:
			depth++
			run = 0
		case token.SequenceEndType, token.MappingEndType:
			depth--
			run = 0
		case token.CollectEntryType:
			run = 0
		}
		if depth <= 0 && t.Position.Line != line {
			run, line = 0, t.Position.Line
		}
		if message := unaffordable(keys, depth, run); message != "" {
			return &placedError{max(t.Position.Line, 1), max(t.Position.Column, 1), message}
		}
	}
	return nil
}

func unaffordable(keys, depth, run int) string {
	switch {
	case keys > maxYAMLKeys:
		return fmt.Sprintf("more than %d keys, which is too many for YAML here; write the file as JSON", maxYAMLKeys)
	case depth > maxFlowDepth:
		return fmt.Sprintf("more than %d brackets within one another", maxFlowDepth)
	case run > maxRun:
		return "not YAML: too much on one line"
	}
	return ""
}
