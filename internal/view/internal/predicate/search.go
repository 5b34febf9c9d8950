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
		size, _ := instructions(text)
		c.with, ok = &expression{pattern, size}, err == nil
	}
	return c, ok
}

// expression is a compiled regular expression.
type expression struct {
	*regexp.Regexp
	instructions int
}

// searches reports whether what a condition costs depends on how long a text is.
func (c *condition) searches() bool { return c.does == opContains || c.does == opMatches }

// search applies a function to a text.
func (c *condition) search(v any, m *meter) truth {
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
		part := c.with.(string)
		return truthOf(m.take(searching(len(text), len(part))) && strings.Contains(text, part))
	}
	pattern := c.with.(*expression)
	return truthOf(m.take(matching(len(text), pattern.instructions)) && pattern.MatchString(text))
}
