package predicate

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
)

// estimate bounds the cost of an evaluation over a value of at most the size that is
// given, a key of at most MaxKey and at most MaxLabels labels.
//
// The elements of one array cannot all be large: their sizes add up to that of the value.
// Since comprehensions are not nested, and the cost of a step grows at least in
// proportion to the size of the element, the worst case lies below many tiny elements,
// whose steps are returned, and one large one together, which is the rest.
func estimate(env *cel.Env, tree *cel.Ast, of sizes) (steps, rest uint64, err error) {
	ranges := map[int64]bool{}
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			ranges[e.AsComprehension().IterRange().ID()] = true
		}
	}))
	of.element = 1
	tiny, err := env.EstimateCost(tree, of)
	if err != nil {
		return 0, 0, err
	}
	of.element, of.ranges = of.value, ranges
	large, err := env.EstimateCost(tree, of)
	if err != nil {
		return 0, 0, err
	}
	return tiny.Max, large.Max, nil
}

// hasMacros reports whether an expression goes through the elements of something.
func hasMacros(e ast.Expr) bool {
	return e.Kind() == ast.ComprehensionKind || slices.ContainsFunc(children(e), hasMacros)
}

// sizes says how large at most is what an expression works with.
type sizes struct {
	value   uint64         // the value, and anything in it
	element uint64         // what a macro goes through
	ranges  map[int64]bool // expressions with one element; nil: as large as the value

	variable func(name string) bool // reports whether a name is that of a variable
	given    func(name string) bool // reports whether it has a value before the resource is known; nil: none has
}

// EstimateSize implements checker.CostEstimator.
func (s sizes) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	most := s.value
	switch path := n.Path(); {
	case s.ranges[n.Expr().ID()]:
		most = 1
	case len(path) == 1 && path[0] == "key":
		most = MaxKey
	case len(path) > 0 && s.given != nil && s.given(path[0]):
		most = MaxKey
	case len(path) == 1 && path[0] == "labels":
		most = MaxLabels
	case !s.mentionsVariable(n.Expr()):
		most = s.element
	}
	return &checker.SizeEstimate{Max: most}
}

// EstimateCallCost implements checker.CostEstimator: cel-go knows its own functions.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// mentionsVariable reports whether an expression depends on more than the element that a
// macro is at.
func (s sizes) mentionsVariable(e ast.Expr) (found bool) {
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && s.variable(e.AsIdent())
	}))
	return found
}

// containsEstimate is the cost of x.contains(y), which grows with the sizes of both: cel-go
// takes their product, so that no two members of a large value could be compared so.
var containsEstimate = checker.OverloadCostEstimate(overloads.ContainsString, func(_ checker.CostEstimator, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if target == nil || len(args) != 1 {
		return nil
	}
	text, part := (*target).ComputedSize(), args[0].ComputedSize()
	if text == nil || part == nil {
		return nil
	}
	return &checker.CallEstimate{CostEstimate: text.Add(*part).MultiplyByCostFactor(common.StringTraversalCostFactor)}
})
