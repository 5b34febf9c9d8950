package predicate

import (
	"iter"
	"maps"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// macro adds a condition on the elements of something. Macros are not nested.
func (b *builder) macro(c ast.ComprehensionExpr) bool {
	does, body, ok := quantifier(c)
	if !ok {
		return false
	}
	over, ok := b.operand(does, c.IterRange())
	if !ok || over.variable != valueVariable {
		return false
	}
	b.element = c.IterVar()
	defer func() { b.element = "" }()
	return b.join(over, body)
}

// quantifier returns which macro an expression was, and what it asks of each element.
func quantifier(c ast.ComprehensionExpr) (operation, ast.Expr, bool) {
	step := c.LoopStep()
	switch initial := literal(c.AccuInit()); {
	case c.HasIterVar2():
	case initial == false && calls(step) == operators.LogicalOr:
		return opExists, step.AsCall().Args()[1], true
	case initial == true && calls(step) == operators.LogicalAnd:
		return opEvery, step.AsCall().Args()[1], true
	case initial == int64(0) && calls(step) == operators.Conditional && calls(c.Result()) == operators.Equals:
		return opOne, step.AsCall().Args()[0], true
	}
	return 0, nil, false
}

// tally is the result of the elements of a macro so far.
type tally struct {
	does    operation
	body    matcher
	trues   int
	falses  int
	neither bool // for one of them at least
}

// names returns the names of an object's members. They are in order where it makes a
// difference: for how much has been searched once the result is known.
func (t *tally) names(of map[string]any) iter.Seq[string] {
	if !slices.ContainsFunc(t.body, func(c condition) bool { return c.searches() }) {
		return maps.Keys(of)
	}
	return slices.Values(slices.Sorted(maps.Keys(of)))
}

// add evaluates one element. It returns true if the other elements make no difference.
func (t *tally) add(element any, in *Input) bool {
	in.element = element
	switch t.body.eval(in) {
	case isTrue:
		t.trues++
		return t.does == opExists
	case isFalse:
		t.falses++
		return t.does == opEvery
	}
	t.neither = true
	return false
}

func (t *tally) result() truth {
	switch {
	case t.does == opExists && t.trues > 0:
		return isTrue
	case t.does == opEvery && t.falses > 0:
		return isFalse
	case t.neither:
		return isNeither
	case t.does == opOne:
		return truthOf(t.trues == 1)
	}
	return truthOf(t.does == opEvery)
}
