package predicate

import (
	"math"
	"unique"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// placed returns a condition on one place in a resource: it must be true, or must exist.
func (b *builder) placed(e ast.Expr) (condition, bool) {
	c, name, ok := b.chain(e)
	c.does = opIs
	if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
		c.does = opHas
	}
	switch {
	case !ok || len(c.at) > math.MaxUint8:
		return condition{}, false
	case name == "value":
		return c, true
	case name == "labels":
		c.variable = labelsVariable
		return c, len(c.at) == 1 && c.by == 0
	case name == "key":
		c.variable = keyVariable
		return c, len(c.at) == 0
	case name == "revision":
		c.variable = revisionVariable
		return c, len(c.at) == 0
	}
	c.variable = elementVariable
	return c, true
}

// chain is the function chain with the element of a macro, which can also be what leads on
// once.
func (b *builder) chain(e ast.Expr) (c condition, variable string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		return c, name, isVariable(name) || name == b.element
	case ast.SelectKind:
		c, variable, ok = b.chain(e.AsSelect().Operand())
		c.at = append(c.at, unique.Make(e.AsSelect().FieldName()))
		return c, variable, ok
	}
	if calls(e) != operators.Index {
		return c, "", false
	}
	c, variable, ok = b.chain(e.AsCall().Args()[0])
	index := e.AsCall().Args()[1]
	if name, constant := literal(index).(string); constant {
		c.at = append(c.at, unique.Make(name))
		return c, variable, ok
	}
	if index.Kind() != ast.IdentKind || b.element == "" || index.AsIdent() != b.element || c.by != 0 {
		return c, "", false
	}
	c.at = append(c.at, name{})
	c.by = uint8(len(c.at))
	return c, variable, ok
}

// operand is like placed, for a place that is compared or iterated over.
func (b *builder) operand(does operation, e ast.Expr) (condition, bool) {
	c, ok := b.placed(e)
	if c.does == opHas {
		return condition{}, false
	}
	c.does = does
	return c, ok
}

// find returns what the condition is about; false if there is none.
func (c *condition) find(in *Input) (any, bool) {
	switch c.variable {
	case keyVariable:
		return in.boxedKey(), true
	case revisionVariable:
		return in.boxedRevision(), true
	case labelsVariable:
		text, ok := in.labels[c.at[0].Value()]
		return text, ok
	}
	return c.follow(in, len(c.at))
}

// follow follows the path as far as a number of names in the value, or in the element.
func (c *condition) follow(in *Input, names int) (v any, ok bool) {
	v, ok = in.value, in.hasValue
	if c.variable == elementVariable {
		v, ok = in.element, true
	}
	for i, name := range c.at[:names] {
		if i+1 == int(c.by) {
			v, ok = index(v, in.element)
		} else {
			object, _ := v.(map[string]any)
			v, ok = object[name.Value()]
		}
		if !ok {
			return nil, false
		}
	}
	return v, ok
}

// index returns the member of an object with a name, or the element of an array at an index.
func index(v, by any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		name, isText := by.(string)
		member, ok := v[name]
		return member, ok && isText
	case []any:
		double, ok := doubleOf(by)
		if i := int(double); ok && i >= 0 && i < len(v) && float64(i) == double {
			return v[i], true
		}
	}
	return nil, false
}

// has tells whether a member exists. Asking an array, or a missing value, for a member is an
// error; any other value has none.
func (c *condition) has(in *Input) truth {
	last := len(c.at) - 1
	if c.variable == labelsVariable {
		_, is := in.labels[c.at[last].Value()]
		return truthOf(is)
	}
	v, ok := c.follow(in, last)
	if _, isArray := v.([]any); !ok || isArray {
		return isNeither
	}
	object, _ := v.(map[string]any)
	_, is := object[c.at[last].Value()]
	return truthOf(is)
}
