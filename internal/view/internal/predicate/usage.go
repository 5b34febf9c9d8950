package predicate

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// Usage is what an expression reads.
type Usage struct {
	// Values are the paths into the value; the empty one is all of it.
	Values []document.Path
	// Labels: labels are read.
	Labels bool
}

// usageOf finds the paths that constant names lead along, each as far as it goes.
func usageOf(e ast.Expr) Usage {
	var u Usage
	u.visit(e)
	u.Values = document.Minimal(u.Values)
	return u
}

func (u *Usage) visit(e ast.Expr) {
	if variable, at := chain(e); variable == "value" {
		u.Values = append(u.Values, at)
		return
	}
	if e.Kind() == ast.IdentKind {
		u.Labels = u.Labels || e.AsIdent() == "labels"
	}
	for _, child := range children(e) {
		u.visit(child)
	}
}

// chain returns the variable that an expression begins with and the constant names that
// lead on from it; "" if it is not of that form.
func chain(e ast.Expr) (variable string, at document.Path) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), nil
	case ast.SelectKind:
		s := e.AsSelect()
		variable, at = chain(s.Operand())
		return variable, append(at, s.FieldName())
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index || len(c.Args()) != 2 {
			return "", nil
		}
		name, ok := literal(c.Args()[1]).(string)
		if !ok {
			return "", nil
		}
		variable, at = chain(c.Args()[0])
		return variable, append(at, name)
	}
	return "", nil
}

// children returns the expressions of which one consists.
func children(e ast.Expr) (out []ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			out = append(out, c.Target())
		}
		return append(out, c.Args()...)
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			out = append(out, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return out
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return nil
}

// noConstant is what literal returns for anything but a constant.
type noConstant struct{}

// literal returns a constant: nil, bool, int64, uint64, float64, string or []byte.
func literal(e ast.Expr) any {
	if e.Kind() != ast.LiteralKind {
		return noConstant{}
	}
	if e.AsLiteral() == types.NullValue {
		return nil
	}
	return e.AsLiteral().Value()
}
