package predicate

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
)

// most returns what an evaluation over a value of at most a size costs at most, as Spent
// counts it. It is far more than what most evaluations cost.
func (p *Predicate) most(e ast.Expr, size int) float64 {
	b := bounds{size: float64(size), step: float64(CostLimit / p.steps), reads: p.matcher == nil}
	units, _ := b.of(e)
	if p.matcher != nil && p.macros { // the program may have to decide
		b.reads = true
		again, _ := b.of(e)
		units += again
	}
	return 1 + units
}

// bounds bounds what parts of an expression cost.
type bounds struct {
	size  float64 // of the value, in bytes
	step  float64 // of a macro
	reads bool    // by a program: a matcher compares what it finds with constants only
}

// of returns the units that a part costs at most, and the bytes of its result.
func (b bounds) of(e ast.Expr) (units, bytes float64) {
	if variable, _ := chain(e); variable != "" {
		return b.reading(e, variable)
	}
	switch e.Kind() {
	case ast.LiteralKind:
		return 0, literalSize(e)
	case ast.ComprehensionKind:
		return b.comprehension(e.AsComprehension())
	}
	for _, part := range children(e) {
		u, n := b.of(part)
		units, bytes = units+u+1, bytes+n
	}
	if e.Kind() == ast.CallKind {
		units += b.search(e.AsCall())
	}
	switch does := calls(e); {
	case decides[does]:
		return units, 1
	case e.Kind() == ast.SelectKind, does == operators.Index, does == operators.Conditional:
		return units + bytes/2 + 3, bytes // that is read
	}
	bytes += 40 // a number as a text is shorter
	return units + 1 + bytes/searchedBytes, bytes
}

// decides has the functions whose results are truth values or numbers.
var decides = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	operators.In: true, operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, overloads.Size: true,
	overloads.StartsWith: true, overloads.EndsWith: true, overloads.Contains: true, overloads.Matches: true,
}

// reading is what it costs to read something in the resource, or an element.
func (b bounds) reading(e ast.Expr, variable string) (units, bytes float64) {
	switch {
	case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly(), variable == "revision":
		return 1, 1
	case variable == "key":
		bytes = MaxKey
	default:
		bytes = b.size
	}
	if !b.reads {
		return 1, bytes
	}
	return 3 + bytes/2, bytes // nothing takes less than two bytes
}

// search is what a search in a text costs.
func (b bounds) search(c ast.CallExpr) float64 {
	name := c.FunctionName()
	if name != overloads.Contains && name != overloads.Matches {
		return 0
	}
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	_, text := b.of(args[0])
	if name == overloads.Contains {
		_, part := b.of(args[1])
		return 1 + text/searchedBytes*(1+part/doublingPart)
	}
	pattern, _ := literal(args[1]).(string)
	size, _ := instructions(pattern)
	return 1 + text*float64(size)/matchedBytes
}

func (b bounds) comprehension(c ast.ComprehensionExpr) (units, bytes float64) {
	units, over := b.of(c.IterRange())
	initial, bytes := b.of(c.AccuInit())
	steps := 1 + over/2
	condition, _ := b.of(c.LoopCondition())
	step, made := b.of(c.LoopStep())
	result, _ := b.of(c.Result())
	return units + initial + result + steps*(condition+step+b.step+1), bytes + steps*made
}

func literalSize(e ast.Expr) float64 {
	switch v := literal(e).(type) {
	case string:
		return float64(len(v))
	case []byte:
		return float64(len(v))
	}
	return 1
}
