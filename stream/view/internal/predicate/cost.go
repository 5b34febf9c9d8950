package predicate

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// estimate bounds the cost of an evaluation over a value of at most size bytes, a key of
// at most MaxKey and at most MaxLabels labels.
//
// The elements of one array cannot all be large: their sizes add up to that of the value.
// Since comprehensions are not nested, and the cost of a step grows at least in
// proportion to the size of the element, the worst case lies below many tiny elements
// and one large one together.
func estimate(env *cel.Env, tree *cel.Ast, size uint64) (uint64, error) {
	ranges := map[int64]bool{}
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			ranges[e.AsComprehension().IterRange().ID()] = true
		}
	}))
	tiny, err := env.EstimateCost(tree, sizes{value: size, element: 1})
	if err != nil {
		return 0, err
	}
	large, err := env.EstimateCost(tree, sizes{value: size, element: size, ranges: ranges})
	if err != nil {
		return 0, err
	}
	if tiny.Max > EstimateLimit {
		return tiny.Max, nil
	}
	return tiny.Max + min(large.Max, EstimateLimit+1), nil
}

// sizes says how large at most is what an expression works with.
type sizes struct {
	value   uint64         // the value, and anything in it
	element uint64         // what a macro goes through
	ranges  map[int64]bool // expressions with one element; nil: as large as the value
}

// EstimateSize implements checker.CostEstimator.
func (s sizes) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	most := s.value
	switch path := n.Path(); {
	case s.ranges[n.Expr().ID()]:
		most = 1
	case len(path) == 1 && path[0] == "key":
		most = MaxKey
	case len(path) == 1 && path[0] == "labels":
		most = MaxLabels
	case !mentionsVariable(n.Expr()):
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
func mentionsVariable(e ast.Expr) (found bool) {
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && isVariable(e.AsIdent())
	}))
	return found
}

// The cost of x.contains(y), which grows with the sizes of both: cel-go takes their
// product, so that no two members of a large value could be compared so. It is said
// twice, for estimates and for the count.
var (
	containsEstimate = checker.OverloadCostEstimate(overloads.ContainsString, func(_ checker.CostEstimator, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
		if target == nil || len(args) != 1 {
			return nil
		}
		text, part := (*target).ComputedSize(), args[0].ComputedSize()
		if text == nil || part == nil {
			return nil
		}
		return &checker.CallEstimate{CostEstimate: text.Add(*part).MultiplyByCostFactor(common.StringTraversalCostFactor)}
	})
	containsCost = interpreter.OverloadCostTracker(overloads.ContainsString, func(args []ref.Val, _ ref.Val) *uint64 {
		size := uint64(0)
		for _, arg := range args {
			if text, ok := arg.(types.String); ok {
				size += uint64(text.Size().(types.Int))
			}
		}
		cost := checker.FixedSizeEstimate(size).MultiplyByCostFactor(common.StringTraversalCostFactor).Max
		return &cost
	})
)
