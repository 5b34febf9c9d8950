package predicate

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// Term is a condition without which an expression is not true: that something is one of
// some constants.
type Term struct {
	// Variable is key, value or labels, and At leads on from there.
	Variable string
	At       document.Path
	// Constants are nil, bool, int64, uint64, float64 or string.
	Constants []any
}

// termsOf returns the terms of an expression's top-level conjunction, and the longest
// prefix of keys that it wants.
func termsOf(e ast.Expr) (terms []Term, prefix string) {
	for _, e := range conjuncts(e, nil) {
		if p, ok := prefixOf(e); ok {
			if len(p) > len(prefix) {
				prefix = p
			}
		} else if t, ok := termOf(e); ok {
			terms = append(terms, t)
		}
	}
	return terms, prefix
}

func conjuncts(e ast.Expr, out []ast.Expr) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
		for _, arg := range e.AsCall().Args() {
			out = conjuncts(arg, out)
		}
		return out
	}
	return append(out, e)
}

// prefixOf returns the constant of key.startsWith(constant).
func prefixOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.CallKind {
		return "", false
	}
	c := e.AsCall()
	if c.FunctionName() != overloads.StartsWith || !c.IsMemberFunction() || c.Target().Kind() != ast.IdentKind || c.Target().AsIdent() != "key" {
		return "", false
	}
	prefix, ok := literal(c.Args()[0]).(string)
	return prefix, ok
}

// termOf returns the term that one conjunct is: x == constant, constant == x,
// x in [constants], or x alone, which is to be true.
func termOf(e ast.Expr) (Term, bool) {
	if place, ok := placeOf(e); ok {
		place.Constants = []any{true}
		return place, true
	}
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return Term{}, false
	}
	left, right := e.AsCall().Args()[0], e.AsCall().Args()[1]
	switch e.AsCall().FunctionName() {
	case operators.Equals:
		if left.Kind() == ast.LiteralKind {
			left, right = right, left
		}
		return equals(left, []ast.Expr{right})
	case operators.In:
		if right.Kind() == ast.ListKind {
			return equals(left, right.AsList().Elements())
		}
	}
	return Term{}, false
}

// equals returns the term that a place is one of some constants, if they are.
func equals(left ast.Expr, constants []ast.Expr) (Term, bool) {
	place, ok := placeOf(left)
	if !ok {
		return Term{}, false
	}
	for _, e := range constants {
		c := literal(e)
		switch c.(type) {
		case nil, bool, int64, uint64, float64, string:
			place.Constants = append(place.Constants, c)
		default:
			return Term{}, false
		}
	}
	return place, true
}

// placeOf returns the place in a resource that an expression names.
func placeOf(e ast.Expr) (Term, bool) {
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		return Term{}, false
	}
	switch variable, at := chain(e); {
	case variable == "value", variable == "key" && len(at) == 0, variable == "labels" && len(at) == 1:
		return Term{Variable: variable, At: at}, true
	}
	return Term{}, false
}
