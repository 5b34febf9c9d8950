package view

import (
	"strings"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/predicate"
	"github.com/watchtide/watchtide/stream"
)

// Type is the type of a name in the expressions of rules.
type Type = predicate.Type

// The types.
const (
	AnyType    = predicate.Any
	TextType   = predicate.Text
	TextsType  = predicate.Texts  // a list of strings
	ObjectType = predicate.Object // a map from strings to anything
)

// Subject is what the expressions of rules are about. It determines the names that they can use
// besides the given ones.
type Subject int

// The subjects.
const (
	OfNothing  Subject = iota // given names alone
	OfResource                // key, value, labels and revision, as in filters
	OfWrite                   // key, old and new: the values before and after, null without a resource
	OfDelete                  // key and old
)

// open returns the names of a subject.
func (s Subject) open() map[string]predicate.Type {
	switch s {
	case OfResource:
		return predicate.Resource()
	case OfWrite:
		return map[string]predicate.Type{"key": predicate.Text, "old": predicate.Any, "new": predicate.Any}
	case OfDelete:
		return map[string]predicate.Type{"key": predicate.Text, "old": predicate.Any}
	}
	return nil
}

// Scope is the names that the expressions of some rules can use.
//
// Static after NewScope; any goroutine may use it.
type Scope struct{ of *predicate.Scope }

// NewScope returns the scope of expressions about a subject. The given names have one dot
// each, as in principal.name.
func NewScope(given map[string]Type, s Subject) (*Scope, error) {
	of, err := predicate.NewScope(given, s.open())
	if err != nil {
		return nil, err
	}
	return &Scope{of}, nil
}

// Expression is a compiled expression of a rule.
//
// Static after Scope.Compile; any goroutine may use it.
type Expression struct{ *rule }

type rule = predicate.Rule

// Compile compiles an expression in CEL, with everything that filters allow. An error is an
// *Error with the name of a parameter.
func (s *Scope) Compile(parameter, text string) (*Expression, error) {
	return s.compile(parameter, text, false)
}

// CompileCondition is like Compile, for an expression that must be true or false.
func (s *Scope) CompileCondition(parameter, text string) (*Expression, error) {
	return s.compile(parameter, text, true)
}

func (s *Scope) compile(parameter, text string, truth bool) (*Expression, error) {
	if err := limitText(parameter, text); err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, refuse(parameter, text, &document.Mistake{Problem: "the expression is empty", Advice: `want a condition, or "true"`})
	}
	compiled, err := s.of.Compile(text, truth, DefaultValueSize)
	if err != nil {
		return nil, refuse(parameter, text, err)
	}
	return &Expression{compiled}, nil
}

// Value evaluates the expression. Names without a value are absent from the map. It
// returns nil, a bool, an int64, a uint64, a float64, a string, []byte, []any or
// map[string]any. An error is a Failure.
func (e *Expression) Value(names map[string]any) (any, error) {
	v, err := e.rule.Value(names)
	if err != nil {
		return nil, failure(err)
	}
	return v, nil
}

// Binding is an expression's view of given values.
type Binding = predicate.Binding

// Grant returns a grant of the resources for which the expression is true with a binding, and of
// their whole values; false: there are none. The subject of the expression must be resources. Given names are
// replaced by constants, and constant parts are evaluated. An error is an *Error: the result is
// not a valid filter.
func (e *Expression) Grant(b *Binding, valueSize int) (Grant, bool, error) {
	compiled, err := e.Filter(b, sizeOf(valueSize))
	if err != nil {
		return Grant{}, false, refuse("grants", e.String(), err)
	}
	if compiled == nil {
		return Grant{}, false, nil
	}
	return Grant{Filter: compiled.String(), compiled: compiled}, true, nil
}

// Decode returns the value of a resource as filters have it: nil, a bool, an int64, a
// uint64, a float64, a string, []any or map[string]any. A value that is not JSON, and one in
// which an object has a member twice, are errors.
func Decode(r stream.Resource) (any, error) {
	var all document.Paths
	all.Add(document.Path{})
	var d document.Document
	if r.Encoding != "" {
		return nil, NotJSON
	}
	if err := d.Read(r.Value, &all); err != nil {
		return nil, NotJSON
	}
	if d.Repeats(document.Path{}) {
		return nil, Repeated
	}
	return d.Root, nil
}
