package predicate

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
)

// searches are the functions of a text and a constant text.
var searches = map[string]operation{
	overloads.StartsWith: opBegins, overloads.EndsWith: opEnds, overloads.Contains: opContains, overloads.Matches: opMatches,
}

func (b *builder) search(does operation, target, arg ast.Expr) (condition, bool) {
	c, ok := b.operand(does, target)
	text, isText := literal(arg).(string)
	if !ok || !isText {
		return condition{}, false
	}
	c.with = text
	if does == opMatches {
		pattern, err := regexp.Compile(text)
		c.with, ok = pattern, err == nil
	}
	return c, ok
}

// search applies a function to a text.
func (c *condition) search(v any) truth {
	text, ok := v.(string)
	if !ok {
		return isNeither
	}
	switch c.does {
	case opBegins:
		return truthOf(strings.HasPrefix(text, c.with.(string)))
	case opEnds:
		return truthOf(strings.HasSuffix(text, c.with.(string)))
	case opContains:
		return truthOf(strings.Contains(text, c.with.(string)))
	}
	return truthOf(c.with.(*regexp.Regexp).MatchString(text))
}
