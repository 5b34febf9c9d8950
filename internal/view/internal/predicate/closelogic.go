package predicate

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// condition returns what is left of an operand that must be true or false: a constant of
// another type fails.
func (c *closer) condition(e ast.Expr) (l left, constant, value bool) {
	l = c.expr(e, true)
	if l.fails {
		return l, false, false
	}
	switch l.Kind() {
	case ast.ListKind, ast.MapKind:
		return left{fails: true}, false, false
	case ast.LiteralKind:
		value, isTruth := literal(l.Expr).(bool)
		return left{Expr: l.Expr, fails: !isTruth}, isTruth, value
	}
	return l, false, false
}

func (c *closer) not(e ast.Expr) left {
	l, constant, value := c.condition(e)
	switch {
	case l.fails:
		return l
	case constant:
		return left{Expr: c.literal(!value)}
	}
	return left{Expr: c.call(operators.LogicalNot, l.Expr)}
}

func (c *closer) conditional(args []ast.Expr, truth bool) left {
	l, constant, value := c.condition(args[0])
	switch {
	case l.fails:
		return l
	case constant && value:
		return c.expr(args[1], truth)
	case constant:
		return c.expr(args[2], truth)
	}
	yes, no := c.expr(args[1], truth), c.expr(args[2], truth)
	return left{Expr: c.call(operators.Conditional, l.Expr, c.orFailure(yes), c.orFailure(no))}
}

// logical returns what is left of && or ||. One operand can decide although the other one
// fails.
func (c *closer) logical(e ast.Expr, truth bool) left {
	name := e.AsCall().FunctionName()
	decides := name == operators.LogicalOr
	var rest []ast.Expr
	fails := false
	for _, arg := range e.AsCall().Args() {
		l, constant, value := c.condition(arg)
		switch {
		case l.fails:
			fails = true
		case constant && value == decides:
			return left{Expr: c.literal(decides)}
		case !constant:
			rest = append(rest, l.Expr)
		}
	}
	switch {
	case len(rest) == 0 && fails:
		return left{fails: true}
	case len(rest) == 0:
		return left{Expr: c.literal(!decides)}
	case fails:
		rest = append(rest, c.failure())
	case len(rest) == 1 && !truth:
		rest = append(rest, c.literal(!decides)) // which fails if the other one is no condition
	}
	all := rest[0]
	for _, next := range rest[1:] {
		all = c.call(name, all, next)
	}
	return left{Expr: all}
}

// positive returns a simpler expression that is true exactly where e is; nil: e is never true.
// Elsewhere it may be false or fail.
func (c *closer) positive(e ast.Expr) ast.Expr {
	switch e.Kind() {
	case ast.LiteralKind:
		if literal(e) != true {
			return nil
		}
		return e
	case ast.ListKind, ast.MapKind:
		return nil
	case ast.CallKind:
	default:
		return e
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd:
		return c.positiveAnd(args)
	case operators.LogicalOr:
		return c.positiveOr(args)
	case operators.Conditional:
		yes, no := c.positive(args[1]), c.positive(args[2])
		if yes == nil && no == nil {
			return nil
		}
		return c.call(operators.Conditional, args[0], c.orFalse(yes), c.orFalse(no))
	case "dyn":
		if isFailure(e) {
			return nil
		}
	}
	return e
}

func (c *closer) orFalse(e ast.Expr) ast.Expr {
	if e == nil {
		return c.literal(false)
	}
	return e
}

func (c *closer) positiveAnd(args []ast.Expr) (all ast.Expr) {
	for _, arg := range args {
		one := c.positive(arg)
		switch {
		case one == nil:
			return nil
		case all == nil:
			all = one
		default:
			all = c.call(operators.LogicalAnd, all, one)
		}
	}
	return all
}

func (c *closer) positiveOr(args []ast.Expr) (some ast.Expr) {
	for _, arg := range args {
		one := c.positive(arg)
		switch {
		case one == nil:
		case some == nil:
			some = one
		default:
			some = c.call(operators.LogicalOr, some, one)
		}
	}
	return some
}
