package predicate

import (
	"maps"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// constant returns a value as an expression.
func (c *closer) constant(v any) ast.Expr {
	switch v := v.(type) {
	case []any:
		elements := make([]ast.Expr, len(v))
		for i, e := range v {
			elements[i] = c.constant(e)
		}
		return c.make.NewList(c.id(), elements, nil)
	case map[string]any:
		var parts []ast.Expr
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, c.constant(name), c.constant(v[name]))
		}
		return c.entries(parts)
	}
	return c.make.NewLiteral(c.id(), types.DefaultTypeAdapter.NativeToValue(v))
}

// withAnyType returns an expression in which the inserted constants have any type.
func (c *closer) withAnyType(e ast.Expr) ast.Expr {
	if c.constants[e.ID()] {
		return c.call("dyn", e)
	}
	each := func(all []ast.Expr) []ast.Expr {
		out := make([]ast.Expr, len(all))
		for i, one := range all {
			out[i] = c.withAnyType(one)
		}
		return out
	}
	switch e.Kind() {
	case ast.SelectKind:
		return c.make.NewSelect(c.id(), c.withAnyType(e.AsSelect().Operand()), e.AsSelect().FieldName())
	case ast.ListKind:
		return c.make.NewList(c.id(), each(e.AsList().Elements()), nil)
	case ast.MapKind:
		return c.entries(each(children(e)))
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return c.make.NewMemberCall(c.id(), call.FunctionName(), c.withAnyType(call.Target()), each(call.Args())...)
		}
		return c.call(call.FunctionName(), each(call.Args())...)
	}
	return e
}
