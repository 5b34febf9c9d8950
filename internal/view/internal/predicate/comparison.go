package predicate

import (
	"cmp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// relations are the comparisons. Each has the comparison that it becomes when its operands are
// swapped.
var relations = map[string]struct{ does, reversed operation }{
	operators.Equals: {opEqual, opEqual}, operators.NotEquals: {opDiffers, opDiffers},
	operators.Less: {opLess, opGreater}, operators.LessEquals: {opMost, opLeast},
	operators.Greater: {opGreater, opLess}, operators.GreaterEquals: {opLeast, opMost},
}

func (b *builder) comparison(does operation, left, right ast.Expr) (c condition, ok bool) {
	if c, ok = b.operand(does, left); !ok {
		return condition{}, false
	}
	if c.with, ok = constant(right); !ok {
		return condition{}, false
	}
	if does == opEqual || does == opDiffers {
		return c, true
	}
	switch c.with.(type) {
	case int64, uint64, float64, string:
		return c, true
	}
	return condition{}, false
}

func (b *builder) inList(left, right ast.Expr) (condition, bool) {
	c, ok := b.operand(opIn, left)
	if !ok || right.Kind() != ast.ListKind {
		return condition{}, false
	}
	list := make([]any, 0, len(right.AsList().Elements()))
	for _, e := range right.AsList().Elements() {
		one, ok := constant(e)
		if !ok {
			return condition{}, false
		}
		list = append(list, one)
	}
	c.with = list
	return c, true
}

// constant returns a constant with which a member of a value can be compared.
func constant(e ast.Expr) (any, bool) {
	c := literal(e)
	switch c.(type) {
	case nil, bool, int64, uint64, float64, string:
		return c, true
	}
	return nil, false
}

// judge compares what was found with the constant.
func (c *condition) judge(v any, m *meter) truth {
	switch c.does {
	case opIs:
		if b, isBool := v.(bool); isBool {
			return truthOf(b)
		}
		return isNeither
	case opEqual:
		return truthOf(equal(v, c.with))
	case opDiffers:
		return truthOf(!equal(v, c.with))
	case opIn:
		return truthOf(slices.ContainsFunc(c.with.([]any), func(one any) bool { return equal(v, one) }))
	case opBegins, opEnds, opContains, opMatches:
		return c.search(v, m)
	}
	order, ok := compare(v, c.with)
	if !ok {
		return isNeither
	}
	switch c.does {
	case opLess:
		return truthOf(order < 0)
	case opMost:
		return truthOf(order <= 0)
	case opGreater:
		return truthOf(order > 0)
	}
	return truthOf(order >= 0)
}

// equal reports whether a member of a value equals a constant in CEL.
func equal(v, constant any) bool {
	if order, ok := compare(v, constant); ok {
		return order == 0
	}
	return v == constant
}

// compare compares two texts, or two numbers: as the whole numbers that both are, or else
// as doubles.
func compare(v, constant any) (order int, ok bool) {
	switch c := constant.(type) {
	case string:
		text, ok := v.(string)
		return strings.Compare(text, c), ok
	case int64:
		switch v := v.(type) {
		case int64:
			return cmp.Compare(v, c), true
		case uint64:
			return -compareWhole(c, v), true
		}
		double, ok := doubleOf(v)
		return cmp.Compare(double, float64(c)), ok
	case uint64:
		switch v := v.(type) {
		case int64:
			return compareWhole(v, c), true
		case uint64:
			return cmp.Compare(v, c), true
		}
		double, ok := doubleOf(v)
		return cmp.Compare(double, float64(c)), ok
	case float64:
		double, ok := doubleOf(v)
		return cmp.Compare(double, c), ok
	}
	return 0, false
}

func compareWhole(a int64, b uint64) int {
	if a < 0 {
		return -1
	}
	return cmp.Compare(uint64(a), b)
}

func doubleOf(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
