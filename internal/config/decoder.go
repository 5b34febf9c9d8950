package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream/view"
)

// decoder walks one document and collects its errors. Owned by Parse.
type decoder struct {
	file     string
	dir      string // relative file names start here
	env      Environment
	anchors  map[string]ast.Node
	given    map[any]value         // the values in the file, by a pointer to their field
	declared map[string]SourceType // of every source; empty for one with an error
	watches  map[string]declaredWatch
	named    []string // all watches, those with errors too
	errs     Errors

	definitions map[string]*view.Definition // of views
	templatings map[string]*templating      // of templates without an error
	template    *templating                 // that is being read; nil: none is
}

func newDecoder(file string, env Environment) *decoder {
	return &decoder{
		file: file, dir: filepath.Dir(file), env: env.withDefaults(),
		given: map[any]value{}, declared: map[string]SourceType{}, watches: map[string]declaredWatch{},
		definitions: map[string]*view.Definition{}, templatings: map[string]*templating{},
	}
}

// value is a YAML value, with its key if it is in a mapping, and its path: for
// instance stream.heartbeat; empty for the whole document.
type value struct {
	node ast.Node
	key  ast.Node
	path string
}

// atKey returns v at the place of its key.
func (v value) atKey() value {
	if v.key != nil {
		v.node = v.key
	}
	return v
}

// entry is one "key: value" of a mapping.
type entry struct {
	name string
	value
}

func (d *decoder) at(line, column int, format string, args ...any) {
	d.errs = append(d.errs, &Error{
		File: d.file, Line: max(line, 1), Column: max(column, 1), Message: fmt.Sprintf(format, args...),
	})
}

// errorf adds an error at the place of v, with its path.
func (d *decoder) errorf(v value, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if v.path != "" {
		message = v.path + ": " + message
	}
	at := position(v.node)
	d.at(at.Line, at.Column, "%s", message)
}

// position returns where a node begins. The token of a block mapping is its
// first ':', which is not the place to report.
func position(n ast.Node) token.Position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return position(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(n.Key)
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return *tk.Position
	}
	return token.Position{Line: 1, Column: 1}
}

// resolve follows an alias, and looks through an anchor. An alias that leads to
// itself is an error.
func (d *decoder) resolve(v value) (value, bool) {
	for range 16 {
		switch n := v.node.(type) {
		case *ast.AnchorNode:
			v.node = n.Value
		case *ast.AliasNode:
			target, ok := d.anchors[aliasName(n)]
			if !ok {
				d.errorf(v, "there is no anchor &%s", aliasName(n))
				return v, false
			}
			v.node = target
		default:
			return v, v.node != nil
		}
	}
	d.errorf(v, "this alias leads to itself")
	return v, false
}

func aliasName(n *ast.AliasNode) string {
	if n.Value == nil || n.Value.GetToken() == nil {
		return ""
	}
	return n.Value.GetToken().Value
}

func (d *decoder) unknownKey(e entry, in string, right []string) {
	advice := suggest.Sentence(e.name, right)
	if in == "" {
		in = "the configuration"
		if section := homeOf(e.node); section != "" {
			advice = fmt.Sprintf("if it is one of the %s, indent it below them", section)
		}
	}
	d.errorf(value{node: e.key}, "unknown key %q in %s; %s", e.name, in, advice)
}

// homeOf returns the section to which a mapping seems to belong; empty: none.
func homeOf(n ast.Node) string {
	for _, pair := range pairs(n) {
		switch pair.Key.GetToken().Value {
		case "type":
			return "sources"
		case "source":
			return "watches"
		}
	}
	return ""
}

// entries returns the keys and values of a mapping, each key once. A missing value
// is an empty mapping.
func (d *decoder) entries(v value) ([]entry, bool) {
	v, ok := d.resolve(v)
	if !ok {
		return nil, false
	}
	if !isMapping(v.node) {
		d.errorf(v, "want a mapping, not %s%s", kind(v.node), mappingAdvice(v.node))
		return nil, false
	}
	return d.uniqueEntries(v, pairs(v.node)), true
}

// isMapping reports whether a value is a mapping, or nothing, which counts as
// one without keys.
func isMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.NullNode, *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// pairs returns the keys and values of a mapping; none if n is none.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// mappingAdvice suggests how to turn a value into a mapping.
func mappingAdvice(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SequenceNode:
		if !n.IsFlowStyle {
			return `: write the names without "-"`
		}
	case *ast.StringNode:
		if strings.Contains(n.Value, ":") {
			return `: write a space after ":"`
		}
	}
	return ""
}

func (d *decoder) uniqueEntries(in value, pairs []*ast.MappingValueNode) []entry {
	var out []entry
	for _, p := range pairs {
		name, ok := d.keyName(p.Key)
		if !ok {
			continue
		}
		first := slices.IndexFunc(out, func(e entry) bool { return e.name == name })
		if first >= 0 {
			d.errorf(value{node: p.Key, path: in.path}, "%q is given twice, first on line %d",
				name, position(out[first].key).Line)
			continue
		}
		out = append(out, entry{name, value{p.Value, p.Key, join(in.path, name)}})
	}
	return out
}

// keyName returns the text of a key.
func (d *decoder) keyName(key ast.MapKeyNode) (string, bool) {
	switch k := key.(type) {
	case *ast.MergeKeyNode:
		d.errorf(value{node: key}, "merge keys (<<) are not supported; write the keys out")
		return "", false
	case *ast.StringNode:
		return k.Value, true
	case ast.ScalarNode:
		return k.GetToken().Value, true
	default:
		d.errorf(value{node: key}, "want a plain word as a key")
		return "", false
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// kind names the kind of a value, for a person.
func kind(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	default:
		return strings.ToLower(n.Type().String())
	}
}
