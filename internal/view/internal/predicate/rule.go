package predicate

import (
	"fmt"
	"math"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// MaxGiven is the size of given values that estimates of costs assume, in bytes.
const MaxGiven = 64 << 10

// Rule is a compiled expression of a rule. It is evaluated with values for all its names, or
// turned into a filter with values for the given ones.
//
// Static after Compile; it may be used by any number of goroutines.
type Rule struct {
	text    string
	scope   *Scope
	tree    ast.Expr // as written
	program program
	parts   map[int64]program // those of the tree that depend on given names alone, by their IDs
	order   []int64           // of the parts
	reads   map[string]bool   // the names that it uses
}

// program is an expression that can be evaluated.
type program struct {
	cel.Program
	steps bool // it takes steps, and ends after some
}

// Compile compiles an expression. truth: it must be a condition. size is the size of the
// largest values of the open names, in bytes. An error is a *decode.Mistake.
func (s *Scope) Compile(text string, truth bool, size int) (*Rule, error) {
	r := &Rule{scope: s, parts: map[int64]program{}, reads: map[string]bool{}}
	for range 2 { // what is evaluated is made from the canonical text alone
		if _, err := s.check(text, truth); err != nil {
			if named := s.checkNames(text); named != nil {
				err = named // it says more
			}
			return nil, err
		}
		tree, err := s.parse(text)
		if err != nil {
			return nil, err
		}
		canonical, err := format(tree.NativeRep())
		if err != nil {
			return nil, err
		}
		if r.text != "" && canonical != r.text {
			return nil, fmt.Errorf("the expression has no canonical form: it is %s and %s", r.text, canonical)
		}
		text, r.text, r.tree = canonical, canonical, tree.NativeRep().Expr()
	}
	tree, err := s.check(r.text, truth)
	if err != nil {
		return nil, fmt.Errorf("the expression in its canonical form, %s: %w", r.text, err)
	}
	r.note(tree.NativeRep().Expr())
	if r.program, err = s.plan(tree, size); err != nil {
		return nil, err
	}
	return r, r.split(r.tree)
}

// checkNames returns what is wrong with the names in a text; nil: nothing, or the text is no
// expression.
func (s *Scope) checkNames(text string) error {
	if _, issues := s.literal.Parse(text); issues.Err() != nil {
		return nil
	}
	_, err := s.parse(text)
	return err
}

// note remembers the names that a checked expression uses.
func (r *Rule) note(e ast.Expr) {
	if e.Kind() == ast.IdentKind && r.scope.has(e.AsIdent()) {
		r.reads[identName(e)] = true
	}
	for _, child := range children(e) {
		r.note(child)
	}
}

// plan makes the program of a checked expression.
func (s *Scope) plan(tree *cel.Ast, size int) (program, error) {
	steps, rest, err := estimate(s.checks, tree, sizes{value: uint64(size), variable: s.has, given: s.isGiven})
	if err != nil {
		return program{}, err
	}
	if cost := min(steps, math.MaxInt64) + min(rest, math.MaxInt64); cost > EstimateLimit {
		return program{}, &document.Mistake{
			Problem: fmt.Sprintf("the expression could cost %d units for values of %d bytes, and at most %d are allowed", cost, size, EstimateLimit),
			Advice:  "compare fewer things, or smaller ones",
		}
	}
	p := program{steps: hasMacros(tree.NativeRep().Expr())}
	p.Program, err = s.checks.Program(tree, metered, cel.InterruptCheckFrequency(uint(CostLimit/max(1, steps/uint64(size)))))
	return p, err
}

// split finds the largest parts of an expression that depend on given names and on nothing
// else, and whose values can be written as constants.
func (r *Rule) split(e ast.Expr) error {
	if e.Kind() == ast.LiteralKind {
		return nil
	}
	if r.dependsOnGiven(e) {
		ok, err := r.addPart(e)
		if ok || err != nil {
			return err
		}
	}
	for _, child := range r.operands(e) {
		if err := r.split(child); err != nil {
			return err
		}
	}
	return nil
}

// operands returns the parts of an expression that have values of their own.
func (r *Rule) operands(e ast.Expr) []ast.Expr {
	switch {
	case e.Kind() == ast.CallKind && localOf(e) != "":
		return append([]ast.Expr{e.AsCall().Target()}, e.AsCall().Args()[1:]...)
	case e.Kind() == ast.CallKind && isHas(e):
		return []ast.Expr{e.AsCall().Args()[0].AsSelect().Operand()}
	}
	return children(e)
}

// dependsOnGiven reports whether an expression uses given names, and no others.
func (r *Rule) dependsOnGiven(e ast.Expr) bool {
	given, other := false, false
	r.free(e, nil, func(name string) {
		given = given || r.scope.roots[name]
		other = other || !r.scope.roots[name] && !isType(name)
	})
	return given && !other
}

// isType reports whether a name is that of a type, which is a constant.
func isType(name string) bool {
	switch name {
	case "bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint":
		return true
	}
	return false
}

// free calls f with the names that an expression uses and does not bind itself.
func (r *Rule) free(e ast.Expr, bound []string, f func(name string)) {
	if e.Kind() == ast.IdentKind {
		if name := identName(e); !slices.Contains(bound, name) {
			f(name)
		}
		return
	}
	if e.Kind() == ast.CallKind && localOf(e) != "" {
		r.free(e.AsCall().Target(), bound, f)
		inside := append(slices.Clone(bound), localOf(e))
		for _, arg := range e.AsCall().Args()[1:] {
			r.free(arg, inside, f)
		}
		return
	}
	for _, child := range children(e) {
		r.free(child, bound, f)
	}
}

// addPart makes a program of a part. false: it has no value that is a constant.
func (r *Rule) addPart(e ast.Expr) (bool, error) {
	text, err := format(ast.NewAST(e, ast.NewSourceInfo(nil)))
	if err != nil {
		return false, err
	}
	tree, err := r.scope.check(text, false)
	if err != nil {
		return false, fmt.Errorf("the part %s: %w", text, err)
	}
	switch tree.OutputType().Kind() {
	case types.TimestampKind, types.DurationKind, types.TypeKind:
		return false, nil
	}
	p, err := r.scope.plan(tree, MaxGiven)
	if err != nil {
		return false, err
	}
	r.parts[e.ID()] = p
	r.order = append(r.order, e.ID())
	return true, nil
}

// String returns the canonical text.
func (r *Rule) String() string { return r.text }

// Reads reports whether the expression uses a name.
func (r *Rule) Reads(name string) bool { return r.reads[name] }

// Value evaluates the expression. It returns nil, a bool, an int64, a uint64, a float64, a
// string, []byte, []any or map[string]any. An error is ErrNoResult or ErrCost.
func (r *Rule) Value(names map[string]any) (any, error) {
	result, err := r.program.value(names)
	if err != nil {
		return nil, err
	}
	v, ok := native(result, 0)
	if !ok {
		return nil, ErrNoResult
	}
	return v, nil
}

// value evaluates a program.
func (p program) value(names map[string]any) (result ref.Val, err error) {
	in := &activation{values: names}
	if p.steps {
		result, _, err = p.ContextEval(ended, in)
	} else {
		result, _, err = p.Eval(in)
	}
	if err != nil {
		return nil, failure(err)
	}
	return result, nil
}

// activation has the values of the names that an expression of a rule is evaluated with.
//
// Owned by one goroutine.
type activation struct {
	values map[string]any
	meter  meter
}

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	if name == meterName {
		return &a.meter, true
	}
	v, ok := a.values[name]
	return v, ok
}

// Parent implements cel.Activation.
func (*activation) Parent() cel.Activation { return nil }

// maxNative is the maximum depth of a value that becomes a constant.
const maxNative = 20

// native returns a value as a Go value. false: it cannot be written as a constant.
func native(v ref.Val, depth int) (any, bool) {
	switch v := v.(type) {
	case types.Null:
		return nil, true
	case types.Bool, types.Int, types.Uint, types.Double, types.String, types.Bytes:
		return v.Value(), true
	case traits.Lister:
		if depth == maxNative {
			return nil, false
		}
		return nativeList(v, depth)
	case traits.Mapper:
		if depth == maxNative {
			return nil, false
		}
		return nativeMap(v, depth)
	}
	return nil, false
}

func nativeList(v traits.Lister, depth int) (any, bool) {
	out := []any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		element, ok := native(it.Next(), depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, element)
	}
	return out, true
}

func nativeMap(v traits.Mapper, depth int) (any, bool) {
	out := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, text := key.(types.String)
		member, ok := native(v.Get(key), depth+1)
		if !text || !ok {
			return nil, false
		}
		out[string(name)] = member
	}
	return out, true
}
