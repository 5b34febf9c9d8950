package predicate

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// junctions are the conditions that consist of other ones.
var junctions = map[string]operation{operators.LogicalAnd: opAll, operators.LogicalOr: opSome, operators.LogicalNot: opNot}

// calls returns the name of the function that an expression calls; "" if it calls none.
func calls(e ast.Expr) string {
	if e.Kind() != ast.CallKind {
		return ""
	}
	return e.AsCall().FunctionName()
}

// join adds a condition and the parts of which it consists.
func (b *builder) join(c condition, parts ...ast.Expr) bool {
	first := len(b.made)
	b.made = append(b.made, c)
	for _, part := range parts {
		if !b.add(part) {
			return false
		}
	}
	b.made[first].parts = uint16(len(b.made) - first - 1)
	return true
}

// junction adds a condition that consists of others.
func (b *builder) junction(does operation, e ast.Expr) bool {
	if does == opAll {
		return b.join(condition{does: does}, conjuncts(e, nil)...)
	}
	return b.join(condition{does: does}, e.AsCall().Args()...)
}

// until evaluates the parts in order, until one decides. Parts that are neither true nor false
// count only if none decides.
func (m matcher) until(decides truth, in *Input) truth {
	result := isTrue - decides
	for rest := m[1 : 1+m[0].parts]; len(rest) > 0; rest = rest[1+rest[0].parts:] {
		switch t := rest.eval(in); t {
		case decides:
			return t
		case isNeither:
			result = t
		}
	}
	return result
}
