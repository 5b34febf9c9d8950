package decode

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/watchtide/watchtide/internal/suggest"
)

// Decoder walks one document and collects its errors. Owned by one goroutine.
type Decoder struct {
	// File is the name of the document, for errors. Names of files in it are relative to its
	// directory.
	File string
	// Env has the inputs outside the document.
	Env Inputs
	// Kinds are the kinds of text.
	Kinds Kinds
	// Types reads types that the decoder does not know.
	Types Types
	// Anchors are the values that have an anchor, by its name.
	Anchors map[string]ast.Node
	// Given has the values in the document, by a pointer to their field.
	Given map[any]Value
	// Errs are the errors so far.
	Errs Mistakes
	// Contents is a hash of the files that were used since it was last emptied.
	Contents string
}

// Inputs are what a document needs outside its text.
type Inputs struct {
	// Getenv looks up an environment variable.
	Getenv func(name string) (string, bool)
	// ReadFile reads a file that the document names.
	ReadFile func(name string) ([]byte, error)
	// Stat describes a file that the document names.
	Stat func(name string) (fs.FileInfo, error)
}

// Types has the types of a document, and the rules between its keys. Its methods are called
// while the document is read.
type Types interface {
	// ReadType reads the value of a key if its field has a type of its own. false: the decoder
	// reads it.
	ReadType(v Value, k Key) bool
	// CheckSection reports mistakes between the keys of a section, after all of them have been
	// read. at is the place of the section's own key.
	CheckSection(section any, at Value)
	// FillIn fills in parameters in a text. false: an error was added.
	FillIn(s *Scalar, kind Text) bool
	// Filled is told of a text with parameters, and of its field.
	Filled(into *string, s Scalar, kind Text)
}

// New returns a decoder of a document with a name.
func New(file string, env Inputs, kinds Kinds, types Types) *Decoder {
	return &Decoder{File: file, Env: env, Kinds: kinds, Types: types, Given: map[any]Value{}}
}

// Value is a YAML value, with its key if it is in a mapping, and its path: for
// instance stream.heartbeat; empty for the whole document.
type Value struct {
	Node ast.Node
	Key  ast.Node
	Path string
}

// AtKey returns v at the place of its key.
func (v Value) AtKey() Value {
	if v.Key != nil {
		v.Node = v.Key
	}
	return v
}

// Entry is one "key: value" of a mapping.
type Entry struct {
	Name string
	Value
}

// At adds an error at a place in the document.
func (d *Decoder) At(line, column int, format string, args ...any) {
	d.Errs = append(d.Errs, &Mistake{
		File: d.File, Line: max(line, 1), Column: max(column, 1), Message: fmt.Sprintf(format, args...),
	})
}

// Errorf adds an error at the place of v, with its path.
func (d *Decoder) Errorf(v Value, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if v.Path != "" {
		message = v.Path + ": " + message
	}
	at := Position(v.Node)
	d.At(at.Line, at.Column, "%s", message)
}

// Resolve follows an alias, and looks through an anchor. An alias that leads to
// itself is an error.
func (d *Decoder) Resolve(v Value) (Value, bool) {
	for range 16 {
		switch n := v.Node.(type) {
		case *ast.AnchorNode:
			v.Node = n.Value
		case *ast.AliasNode:
			target, ok := d.Anchors[AliasName(n)]
			if !ok {
				d.Errorf(v, "there is no anchor &%s", AliasName(n))
				return v, false
			}
			v.Node = target
		default:
			return v, v.Node != nil
		}
	}
	d.Errorf(v, "this alias leads to itself")
	return v, false
}

// UnknownKey reports an entry of a section whose key is none of the right ones.
func (d *Decoder) UnknownKey(e Entry, in string, right []string) {
	advice := suggest.Sentence(e.Name, right)
	if in == "" {
		in = "the configuration"
		if section := HomeOf(e.Node); section != "" {
			advice = fmt.Sprintf("if it is one of the %s, indent it below them", section)
		}
	}
	d.Errorf(Value{Node: e.Key}, "unknown key %q in %s; %s", e.Name, in, advice)
}

// Entries returns the keys and values of a mapping, each key once. A missing value
// is an empty mapping.
func (d *Decoder) Entries(v Value) ([]Entry, bool) {
	v, ok := d.Resolve(v)
	if !ok {
		return nil, false
	}
	if !IsMapping(v.Node) {
		d.Errorf(v, "want a mapping, not %s%s", KindOf(v.Node), MappingAdvice(v.Node))
		return nil, false
	}
	return d.uniqueEntries(v, Pairs(v.Node)), true
}

func (d *Decoder) uniqueEntries(in Value, pairs []*ast.MappingValueNode) []Entry {
	var out []Entry
	for _, p := range pairs {
		name, ok := d.keyName(p.Key)
		if !ok {
			continue
		}
		first := slices.IndexFunc(out, func(e Entry) bool { return e.Name == name })
		if first >= 0 {
			d.Errorf(Value{Node: p.Key, Path: in.Path}, "%q is given twice, first on line %d",
				name, Position(out[first].Key).Line)
			continue
		}
		out = append(out, Entry{name, Value{p.Value, p.Key, Join(in.Path, name)}})
	}
	return out
}

// keyName returns the text of a key.
func (d *Decoder) keyName(key ast.MapKeyNode) (string, bool) {
	switch k := key.(type) {
	case *ast.MergeKeyNode:
		d.Errorf(Value{Node: key}, "merge keys (<<) are not supported; write the keys out")
		return "", false
	case *ast.StringNode:
		return k.Value, true
	case ast.ScalarNode:
		return k.GetToken().Value, true
	default:
		d.Errorf(Value{Node: key}, "want a plain word as a key")
		return "", false
	}
}

// Join returns the path of a key in the mapping at a path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
