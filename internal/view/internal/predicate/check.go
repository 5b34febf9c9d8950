package predicate

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// check parses an expression and checks its types and what only we forbid.
func check(env *cel.Env, text string) (*cel.Ast, error) {
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, explain(env, text, issues.Errors()[0])
	}
	c := rules{text: text, info: tree.NativeRep().SourceInfo()}
	c.visit(tree.NativeRep().Expr(), false)
	if c.found != nil {
		return nil, c.found
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &document.Mistake{
			Problem: fmt.Sprintf("the filter gives a value of type %s, want true or false", cel.FormatCELType(t)),
			Advice:  `compare it with something, as in key == "a"`,
		}
	}
	return tree, nil
}

// rules looks for what is allowed in CEL and not here.
type rules struct {
	text  string
	info  *ast.SourceInfo
	found *document.Mistake // the first
}

func (c *rules) report(e ast.Expr, problem, advice string) {
	if c.found != nil {
		return
	}
	for e.Kind() == ast.SelectKind { // whose place is that of its dot
		e = e.AsSelect().Operand()
	}
	at := c.info.GetStartLocation(e.ID())
	c.found = &document.Mistake{Offset: offset(c.text, at.Line(), at.Column()), Problem: problem, Advice: advice}
}

// visit checks an expression; inside says that it is evaluated for each element that a
// macro goes through.
func (c *rules) visit(e ast.Expr, inside bool) {
	switch e.Kind() {
	case ast.StructKind:
		c.report(e, "messages cannot be made here", "a map is {\"name\": value}")
	case ast.CallKind:
		c.call(e)
	case ast.ComprehensionKind:
		c.comprehension(e, inside)
		return
	}
	for _, child := range children(e) {
		c.visit(child, inside)
	}
}

func (c *rules) comprehension(e ast.Expr, inside bool) {
	comprehension := e.AsComprehension()
	if inside {
		c.report(e, "macros are nested", "all, exists, exists_one, filter and map cannot be used within one another")
	}
	if name := comprehension.IterVar(); isVariable(name) {
		c.report(e, fmt.Sprintf("the macro hides the variable %q", name), "choose another name for the element")
	}
	if makesMap(comprehension.IterRange()) {
		c.report(e, "the macro goes through something with a map of the filter's own", "such a map has no order; use a list")
	}
	c.visit(comprehension.IterRange(), inside)
	for _, part := range children(e)[1:] {
		c.visit(part, true)
	}
}

// makesMap reports whether an expression has a map literal in it.
func makesMap(e ast.Expr) bool {
	return e.Kind() == ast.MapKind || slices.ContainsFunc(children(e), makesMap)
}

// fixedZone is a time zone that means the same on all machines.
var fixedZone = regexp.MustCompile(`^(UTC|[+-]?\d\d:\d\d)$`)

// call checks the arguments of functions that take constants only.
func (c *rules) call(e ast.Expr) {
	call := e.AsCall()
	args := call.Args()
	if len(args) == 0 {
		return
	}
	last := args[len(args)-1]
	text, constant := literal(last).(string)
	switch name := call.FunctionName(); {
	case name == overloads.Matches && !constant:
		c.report(last, "the pattern is not a constant", `want it in quotes, as in key.matches("^a")`)
	case name == overloads.Matches:
		c.pattern(last, text)
	case slices.Contains(zoned, name) && !(constant && fixedZone.MatchString(text)):
		c.report(last, "the time zone can differ from one machine to the next", `want a constant like "UTC" or "+02:00"`)
	}
}

// zoned are the functions that take a time zone.
var zoned = []string{
	overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDate,
	overloads.TimeGetDayOfMonth, overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes,
	overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
}

func (c *rules) pattern(e ast.Expr, pattern string) {
	if n, err := instructions(pattern); err != nil {
		c.report(e, "the pattern is wrong", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	} else if n > MaxPattern {
		c.report(e, fmt.Sprintf("the pattern compiles to %d instructions, and at most %d are allowed", n, MaxPattern), "want fewer or smaller repetitions")
	}
}

// instructions returns the size of a compiled pattern. (That of cel-go panics at
// repetitions.)
func instructions(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(compiled.Inst), nil
}
