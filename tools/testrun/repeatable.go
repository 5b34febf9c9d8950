package main

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// directive in the comment of a test: it may be run again.
const directive = "//testrun:again"

// repeatable: whether a failed test of a package may be run again.
func (r *runner) repeatable(pkg, name string) bool {
	cmd := exec.CommandContext(r.ctx, goProgram(), "list", "-f", "{{.Dir}}", pkg)
	cmd.Dir = r.dir
	out, err := cmd.Output()
	if err != nil {
		return false
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && mayRepeat(text, name) {
			return true
		}
	}
	return false
}

// mayRepeat: whether this file has the test, and the test uses real servers or has the
// directive, and is no property.
func mayRepeat(text []byte, name string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments)
	if err != nil {
		return false
	}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == name {
			return (usesServers(f) || directed(d)) && !isProperty(d)
		}
	}
	return false
}

// usesServers: whether the file is built only with the tag of real servers.
func usesServers(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if group.Pos() > f.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err == nil && !expr.Eval(func(tag string) bool { return tag != "servers" }) {
				return true
			}
		}
	}
	return false
}

func directed(d *ast.FuncDecl) bool {
	if d.Doc == nil {
		return false
	}
	for _, c := range d.Doc.List {
		if strings.HasPrefix(c.Text, directive+" ") {
			return true // with a reason
		}
	}
	return false
}

// isProperty: whether the test draws random cases.
func isProperty(d *ast.FuncDecl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "rapid" {
				found = true
			}
		}
		return !found
	})
	return found
}
