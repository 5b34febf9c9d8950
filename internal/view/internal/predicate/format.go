package predicate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// errUnprintable: an expression that no text of the language makes.
var errUnprintable = errors.New("the expression cannot be printed")

// format returns the canonical text of an expression: parentheses only where an operand
// binds no tighter than its operator (&& in && and || in || aside), strings in double
// quotes, one space around operators. The text means what the expression means; that of
// cel-go does not for a unary operator before a dot.
func format(tree *ast.AST) (string, error) {
	p := printer{macros: tree.SourceInfo()}
	p.expr(tree.Expr())
	return p.out.String(), p.err
}

type printer struct {
	macros *ast.SourceInfo
	out    strings.Builder
	err    error
}

// How tightly an expression binds.
const (
	bindConditional = iota
	bindOr
	bindAnd
	bindRelation
	bindArithmetic
	bindUnary
	bindNumber // could be negative, or end in what looks like a dot
	bindTightly
)

// binding returns how tightly an expression binds, and the text of its operator.
func binding(e ast.Expr) (binds int, operator string) {
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral().(type) {
		case types.Int, types.Uint, types.Double:
			return bindNumber, ""
		}
		return bindTightly, ""
	case ast.CallKind:
	default:
		return bindTightly, ""
	}
	name := e.AsCall().FunctionName()
	operator, _ = operators.FindReverse(name)
	switch name {
	case operators.Conditional:
		return bindConditional, operator
	case operators.LogicalOr:
		return bindOr, operator
	case operators.LogicalAnd:
		return bindAnd, operator
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In:
		return bindRelation, operator
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return bindArithmetic, operator
	case operators.LogicalNot, operators.Negate:
		return bindUnary, operator
	}
	return bindTightly, ""
}

func (p *printer) write(text string) { p.out.WriteString(text) }

// source returns the macro call that an expression was made from, or the expression.
func (p *printer) source(e ast.Expr) ast.Expr {
	if call, found := p.macros.GetMacroCall(e.ID()); found {
		return call
	}
	return e
}

func (p *printer) expr(e ast.Expr) {
	e = p.source(e)
	switch e.Kind() {
	case ast.LiteralKind:
		p.literal(e)
	case ast.IdentKind:
		p.write(strings.TrimPrefix(e.AsIdent(), "."))
	case ast.SelectKind:
		p.field(e.AsSelect())
	case ast.CallKind:
		p.call(e)
	case ast.ListKind:
		p.write("[")
		p.list(e.AsList().Elements())
		p.write("]")
	case ast.MapKind:
		p.entries(e.AsMap().Entries())
	default:
		p.err = errUnprintable
	}
}

func (p *printer) literal(e ast.Expr) {
	switch v := e.AsLiteral().(type) {
	case types.String:
		p.write(strconv.Quote(string(v)))
	case types.Bytes:
		p.write(`b"`)
		for _, c := range []byte(v) {
			fmt.Fprintf(&p.out, `\%03o`, c)
		}
		p.write(`"`)
	case types.Double:
		text := strconv.FormatFloat(float64(v), 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		p.write(text)
	case types.Uint:
		p.write(strconv.FormatUint(uint64(v), 10) + "u")
	case types.Int:
		p.write(strconv.FormatInt(int64(v), 10))
	case types.Bool:
		p.write(strconv.FormatBool(bool(v)))
	case types.Null:
		p.write("null")
	default:
		p.err = errUnprintable
	}
}

func (p *printer) field(s ast.SelectExpr) {
	if s.IsTestOnly() {
		p.write("has(")
		defer p.write(")")
	}
	p.operand(s.Operand(), bindNumber)
	p.write("." + s.FieldName())
}

// operand prints an expression, in parentheses unless it binds tighter than outside.
func (p *printer) operand(e ast.Expr, outside int) {
	if binds, _ := binding(p.source(e)); binds > outside {
		p.expr(e)
		return
	}
	p.write("(")
	p.expr(e)
	p.write(")")
}

func (p *printer) call(e ast.Expr) {
	c := e.AsCall()
	args := c.Args()
	switch binds, operator := binding(e); binds {
	case bindConditional:
		p.operand(args[0], binds)
		p.write(" ? ")
		p.operand(args[1], binds)
		p.write(" : ")
		p.operand(args[2], binds)
	case bindOr, bindAnd:
		p.chain(e, operator, binds)
	case bindRelation, bindArithmetic:
		p.operand(args[0], binds)
		p.write(" " + operator + " ")
		p.operand(args[1], binds)
	case bindUnary:
		p.write(operator)
		p.operand(args[0], bindNumber)
	default:
		p.function(c)
	}
}

// chain prints the operands of && or || without regard to how they are nested: that makes
// no difference.
func (p *printer) chain(e ast.Expr, operator string, binds int) {
	for i, arg := range e.AsCall().Args() {
		if i > 0 {
			p.write(" " + operator + " ")
		}
		inner := p.source(arg)
		if b, _ := binding(inner); b == binds {
			p.chain(inner, operator, binds)
			continue
		}
		p.operand(arg, binds)
	}
}

func (p *printer) function(c ast.CallExpr) {
	args := c.Args()
	if c.FunctionName() == operators.Index {
		p.operand(args[0], bindNumber)
		p.write("[")
		p.expr(args[1])
		p.write("]")
		return
	}
	if c.IsMemberFunction() {
		p.operand(c.Target(), bindNumber)
		p.write(".")
	}
	p.write(c.FunctionName() + "(")
	p.list(args)
	p.write(")")
}

func (p *printer) list(elements []ast.Expr) {
	for i, e := range elements {
		if i > 0 {
			p.write(", ")
		}
		p.expr(e)
	}
}

func (p *printer) entries(entries []ast.EntryExpr) {
	p.write("{")
	for i, e := range entries {
		if i > 0 {
			p.write(", ")
		}
		p.expr(e.AsMapEntry().Key())
		p.write(": ")
		p.expr(e.AsMapEntry().Value())
	}
	p.write("}")
}
