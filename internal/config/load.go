package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxFileBytes is the most bytes that a configuration file may have.
const MaxFileBytes = 1 << 20

// Environment has the inputs of a configuration outside its file.
type Environment struct {
	// Getenv looks up an environment variable; nil: os.LookupEnv.
	Getenv func(name string) (string, bool)
	// ReadFile reads a file that the configuration names; nil: os.ReadFile.
	ReadFile func(name string) ([]byte, error)
	// Flags are the values of the command line.
	Flags Flags
}

func (e Environment) withDefaults() Environment {
	if e.Getenv == nil {
		e.Getenv = os.LookupEnv
	}
	if e.ReadFile == nil {
		e.ReadFile = os.ReadFile
	}
	return e
}

// Load reads the file, and the files that it names. An error is an Errors, or
// why the file cannot be read.
func Load(file string, env Environment) (*Config, error) {
	data, err := env.withDefaults().ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(file, data, env)
}

// Parse reads data as the content of file, and the files that it names. The
// error is an Errors. Without a file, it validates the flags.
func Parse(file string, data []byte, env Environment) (*Config, error) {
	d := newDecoder(file, env)
	c := Default()
	if body := d.document(data); body != nil {
		d.section(value{node: body}, c)
		d.views(c)
		d.templates(c)
	}
	d.env.Flags.override(c)
	d.exposure(c)
	if len(d.errs) > 0 {
		return nil, d.errs.sorted()
	}
	return c, nil
}

// document parses the YAML and returns its one document; nil: empty, or an
// error was added.
func (d *decoder) document(data []byte) ast.Node {
	if len(data) > MaxFileBytes {
		d.at(1, 1, "the file has %d bytes; at most %d are read", len(data), MaxFileBytes)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors start a file with it
	if !utf8.Valid(data) {
		d.at(1, 1, "the file is not UTF-8")
		return nil
	}
	// Duplicate keys are reported together with everything else.
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntaxError(err, data)
		return nil
	}
	if len(file.Docs) > 1 && file.Docs[1].Body != nil {
		d.errorf(value{node: file.Docs[1].Body}, "a second document begins here; want one")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	d.anchors = anchors(file.Docs[0].Body)
	return file.Docs[0].Body
}

func (d *decoder) syntaxError(err error, data []byte) {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
		message, _, _ := strings.Cut(err.Error(), "\n")
		d.at(1, 1, "not YAML: %s", message)
		return
	}
	at := syntax.Token.Position
	d.at(at.Line, at.Column, "not YAML: %s%s", syntax.Message, hint(syntax.Message, line(data, at.Line)))
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

// anchors finds every anchor in the document; of duplicates the last is used.
func anchors(root ast.Node) map[string]ast.Node {
	found := anchorVisitor{}
	ast.Walk(found, root)
	return found
}

type anchorVisitor map[string]ast.Node

// Visit records the node if it is an anchor.
func (v anchorVisitor) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		v[a.Name.GetToken().Value] = a.Value
	}
	return v
}
