package predicate

import (
	"errors"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Never reports whether the rule cannot be true with a binding.
func (r *Rule) Never(b *Binding) bool {
	return r.residue(b) == nil
}

// Filter returns the rule with a binding, as a filter; nil: it is never true. An error is that
// of Compile. Names are replaced by constants, in the tree of the expression and not in its
// text, so that no value can change what the expression means.
func (r *Rule) Filter(b *Binding, maxValue int) (*Predicate, error) {
	e := r.residue(b)
	if e == nil {
		return nil, nil
	}
	p, err := compileTree(e, maxValue)
	if err != nil {
		// A claim has any type, but a constant has one: a comparison with another type would be
		// refused instead of being false.
		if loose, looseErr := compileTree(r.loosen(b), maxValue); looseErr == nil {
			return loose, nil
		}
	}
	return p, err
}

// compileTree compiles a tree to a filter.
func compileTree(e ast.Expr, maxValue int) (*Predicate, error) {
	text, err := format(ast.NewAST(e, ast.NewSourceInfo(nil)))
	if err != nil {
		return nil, err
	}
	p, err := Compile(text, maxValue)
	if err == nil && p.String() != text {
		return nil, errors.New("the closed expression has no canonical form")
	}
	return p, err
}

// residue returns what is left of the rule with a binding; nil: it is never true.
func (r *Rule) residue(b *Binding) ast.Expr {
	c := closer{rule: r, binding: b, make: ast.NewExprFactory(), next: 1 << 32}
	left := c.expr(r.tree, true)
	if left.fails {
		return nil
	}
	return c.positive(left.Expr)
}

// loosen is like residue, with constants of any type.
func (r *Rule) loosen(b *Binding) ast.Expr {
	c := closer{rule: r, binding: b, make: ast.NewExprFactory(), next: 1 << 32, constants: map[int64]bool{}}
	left := c.expr(r.tree, true)
	if left.fails {
		return c.failure()
	}
	if e := c.positive(left.Expr); e != nil {
		return c.withAnyType(e)
	}
	return c.literal(false)
}

// closer replaces given names by constants.
type closer struct {
	rule      *Rule
	binding   *Binding
	make      ast.ExprFactory
	next      int64          // the next ID
	constants map[int64]bool // the IDs of the constants that it has put in; nil: not needed
}

// left is what is left of an expression.
type left struct {
	ast.Expr
	fails bool // evaluating it is an error, and it has no Expr
}

func (c *closer) id() int64 {
	c.next++
	return c.next
}

// failure is an expression of any type whose evaluation is an error.
func (c *closer) failure() ast.Expr {
	return c.call("dyn", c.call(operators.Divide, c.make.NewLiteral(c.id(), types.Int(1)), c.make.NewLiteral(c.id(), types.Int(0))))
}

func (c *closer) call(function string, args ...ast.Expr) ast.Expr {
	return c.make.NewCall(c.id(), function, args...)
}

func (c *closer) literal(b bool) ast.Expr { return c.make.NewLiteral(c.id(), types.Bool(b)) }

// orFailure returns the expression that is left, or a failure.
func (c *closer) orFailure(l left) ast.Expr {
	if l.fails {
		return c.failure()
	}
	return l.Expr
}

// expr returns what is left of an expression. truth: it stands where anything but true and
// false is an error.
func (c *closer) expr(e ast.Expr, truth bool) left {
	if v, closed := c.binding.values[e.ID()]; closed {
		if _, none := v.(noConstant); none {
			return left{fails: true}
		}
		constant := c.constant(v)
		if c.constants != nil {
			c.constants[constant.ID()] = true
		}
		return left{Expr: constant}
	}
	switch e.Kind() {
	case ast.SelectKind:
		return c.strict([]ast.Expr{e.AsSelect().Operand()}, func(parts []ast.Expr) ast.Expr {
			return c.make.NewSelect(c.id(), parts[0], e.AsSelect().FieldName())
		})
	case ast.ListKind:
		return c.strict(e.AsList().Elements(), func(parts []ast.Expr) ast.Expr { return c.make.NewList(c.id(), parts, nil) })
	case ast.MapKind:
		return c.strict(children(e), func(parts []ast.Expr) ast.Expr { return c.entries(parts) })
	case ast.CallKind:
		return c.callOf(e, truth)
	}
	return left{Expr: e}
}

// strict is for an expression that fails if one of its parts does.
func (c *closer) strict(parts []ast.Expr, combine func([]ast.Expr) ast.Expr) left {
	out := make([]ast.Expr, len(parts))
	for i, part := range parts {
		l := c.expr(part, false)
		if l.fails {
			return l
		}
		out[i] = l.Expr
	}
	return left{Expr: combine(out)}
}

// entries makes a map of keys and values in turn.
func (c *closer) entries(parts []ast.Expr) ast.Expr {
	var entries []ast.EntryExpr
	for pair := range slices.Chunk(parts, 2) {
		entries = append(entries, c.make.NewMapEntry(c.id(), pair[0], pair[1], false))
	}
	return c.make.NewMap(c.id(), entries)
}

func (c *closer) callOf(e ast.Expr, truth bool) left {
	call := e.AsCall()
	switch name := call.FunctionName(); {
	case name == operators.LogicalAnd, name == operators.LogicalOr:
		return c.logical(e, truth)
	case name == operators.LogicalNot:
		return c.not(call.Args()[0])
	case name == operators.Conditional:
		return c.conditional(call.Args(), truth)
	case isHas(e):
		field := call.Args()[0].AsSelect()
		return c.strict([]ast.Expr{field.Operand()}, func(parts []ast.Expr) ast.Expr {
			return c.call("has", c.make.NewSelect(c.id(), parts[0], field.FieldName()))
		})
	case localOf(e) != "":
		return c.macro(call)
	case call.IsMemberFunction():
		return c.strict(append([]ast.Expr{call.Target()}, call.Args()...), func(parts []ast.Expr) ast.Expr {
			return c.make.NewMemberCall(c.id(), name, parts[0], parts[1:]...)
		})
	default:
		return c.strict(call.Args(), func(parts []ast.Expr) ast.Expr { return c.call(name, parts...) })
	}
}

// macro returns what is left of a macro over the elements of something. A failure in its body
// counts only if there is an element.
func (c *closer) macro(call ast.CallExpr) left {
	target := c.expr(call.Target(), false)
	if target.fails {
		return target
	}
	args := []ast.Expr{call.Args()[0]}
	for _, arg := range call.Args()[1:] {
		args = append(args, c.orFailure(c.expr(arg, false)))
	}
	return left{Expr: c.make.NewMemberCall(c.id(), call.FunctionName(), target.Expr, args...)}
}

// isFailure reports whether a call of dyn was made by failure.
func isFailure(e ast.Expr) bool {
	of := e.AsCall().Args()
	if len(of) != 1 || of[0].Kind() != ast.CallKind || of[0].AsCall().FunctionName() != operators.Divide {
		return false
	}
	args := of[0].AsCall().Args()
	return literal(args[0]) == int64(1) && literal(args[1]) == int64(0)
}
