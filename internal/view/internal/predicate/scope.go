package predicate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// Type is the type of a name.
type Type int

// The types.
const (
	Any    Type = iota
	Text        // a string
	Texts       // a list of strings
	Object      // a map from strings to anything
	Number      // an int
	Labels      // a map from strings to strings
)

func (t Type) cel() *cel.Type {
	switch t {
	case Text:
		return cel.StringType
	case Texts:
		return cel.ListType(cel.StringType)
	case Object:
		return cel.MapType(cel.StringType, cel.DynType)
	case Number:
		return cel.IntType
	case Labels:
		return cel.MapType(cel.StringType, cel.StringType)
	}
	return cel.DynType
}

// Resource has the names of a resource that filters can use.
func Resource() map[string]Type {
	return map[string]Type{"key": Text, "value": Any, "labels": Labels, "revision": Number}
}

// Scope is the names that the expressions of rules can use.
//
// Static after NewScope; any goroutine may use it.
type Scope struct {
	given   map[string]Type
	open    map[string]Type
	roots   map[string]bool // what the given names have before their dots
	checks  *cel.Env
	literal *cel.Env // without macros, so that a tree has the expression as it is written
}

// NewScope returns a scope. Given names have a dot, and get their values before the rule is
// used. Open names are what the rule is about.
func NewScope(given, open map[string]Type) (*Scope, error) {
	base, err := environment()
	if err != nil {
		return nil, err
	}
	s := &Scope{given: given, open: open, roots: map[string]bool{}}
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	options := language(registry)
	for name, t := range given {
		root, _, _ := strings.Cut(name, ".")
		s.roots[root] = true
		options = append(options, cel.Variable(name, t.cel()))
	}
	for name, t := range open {
		options = append(options, cel.Variable(name, t.cel()))
	}
	if s.checks, err = cel.NewEnv(options...); err != nil {
		return nil, err
	}
	s.literal, err = base.Extend(cel.ClearMacros())
	return s, err
}

// has reports whether the scope has a name, as it is in checked expressions.
func (s *Scope) has(name string) bool {
	name = strings.TrimPrefix(name, ".")
	_, given := s.given[name]
	_, open := s.open[name]
	return given || open
}

// isGiven reports whether a name has a value before the rule is used.
func (s *Scope) isGiven(name string) bool {
	_, given := s.given[strings.TrimPrefix(name, ".")]
	return given
}

// parse reads an expression as it is written, and checks its names.
func (s *Scope) parse(text string) (*cel.Ast, error) {
	tree, issues := s.literal.Parse(text)
	if issues.Err() != nil {
		return nil, explain(s.literal, text, issues.Errors()[0])
	}
	n := names{scope: s, text: text, info: tree.NativeRep().SourceInfo()}
	n.visit(tree.NativeRep().Expr())
	if n.found != nil {
		return nil, n.found
	}
	return tree, nil
}

// check checks an expression and its types. truth: it must be a condition.
func (s *Scope) check(text string, truth bool) (*cel.Ast, error) {
	tree, issues := s.checks.Compile(text)
	if issues.Err() != nil {
		e := issues.Errors()[0]
		if found := undeclared.FindStringSubmatch(e.Message); found != nil {
			at := offset(text, e.Location.Line(), e.Location.Column())
			if !strings.HasPrefix(text[at:], "(") {
				return nil, s.unknown(found[1], at)
			}
		}
		return nil, explain(s.checks, text, e)
	}
	c := rules{text: text, info: tree.NativeRep().SourceInfo()}
	c.visit(tree.NativeRep().Expr(), false)
	if c.found != nil {
		return nil, c.found
	}
	if t := tree.OutputType(); truth && !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &document.Mistake{
			Problem: fmt.Sprintf("the expression gives a value of type %s, want true or false", cel.FormatCELType(t)),
			Advice:  "compare it with something, with ==",
		}
	}
	return tree, nil
}

// unknown returns the error for a name that is not in the scope.
func (s *Scope) unknown(name string, at int) *document.Mistake {
	m := &document.Mistake{Offset: at, Problem: fmt.Sprintf("there is no name %q here", name)}
	known := slices.Concat(slices.Collect(maps.Keys(s.open)), slices.Collect(maps.Keys(s.given)))
	m.Advice = suggest.Sentence(name, known)
	return m
}

// names checks the names of an expression as it is written: a name before a dot must be
// followed by a known one, and no macro may hide one.
type names struct {
	scope *Scope
	text  string
	info  *ast.SourceInfo
	found *document.Mistake // the first
}

func (n *names) report(e ast.Expr, problem, advice string) {
	if n.found != nil {
		return
	}
	at := n.info.GetStartLocation(e.ID())
	n.found = &document.Mistake{Offset: offset(n.text, at.Line(), at.Column()), Problem: problem, Advice: advice}
}

func (n *names) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		if root := e.AsSelect().Operand(); root.Kind() == ast.IdentKind && n.scope.roots[identName(root)] {
			n.member(root, e.AsSelect().FieldName())
			return
		}
	case ast.IdentKind:
		if root := identName(e); n.scope.roots[root] {
			n.report(e, fmt.Sprintf("%q cannot be used as a whole", root), "want "+strings.Join(n.members(root), ", "))
		}
	case ast.CallKind:
		if local := localOf(e); local != "" && (n.scope.roots[local] || n.scope.has(local)) {
			n.report(e.AsCall().Args()[0], fmt.Sprintf("the macro hides the name %q", local), "choose another name for the element")
		}
	}
	for _, child := range children(e) {
		n.visit(child)
	}
}

// member checks a name with a dot in it.
func (n *names) member(root ast.Expr, field string) {
	name := identName(root) + "." + field
	if _, known := n.scope.given[name]; !known {
		n.report(root, fmt.Sprintf("there is no %s", name), suggest.Sentence(name, n.members(identName(root))))
	}
}

// members returns the given names that begin with a root.
func (n *names) members(root string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range n.scope.given {
			if strings.HasPrefix(name, root+".") && !yield(name) {
				return
			}
		}
	})
}

// identName returns the name of an identifier. A dot before it changes nothing, since
// nothing here is in a container.
func identName(e ast.Expr) string { return strings.TrimPrefix(e.AsIdent(), ".") }

// localOf returns the name that a macro gives to the elements that it iterates over; "": the
// call is not such a macro.
func localOf(e ast.Expr) string {
	call := e.AsCall()
	if !call.IsMemberFunction() || len(call.Args()) < 2 || call.Args()[0].Kind() != ast.IdentKind {
		return ""
	}
	switch call.FunctionName() {
	case "all", "exists", "exists_one", "existsOne", "map", "filter":
		return identName(call.Args()[0])
	}
	return ""
}

// isHas reports whether a call is the macro has.
func isHas(e ast.Expr) bool {
	call := e.AsCall()
	return call.FunctionName() == "has" && !call.IsMemberFunction() && len(call.Args()) == 1 && call.Args()[0].Kind() == ast.SelectKind
}
