package watchtide_test

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// serverTag is the build tag of tests that start real servers: make test leaves
// them out, so that it needs this repository alone.
const serverTag = "servers"

// withoutServers are names of realserver that start none.
var withoutServers = []string{"Main", "Listen", "Address", "FreePort", "FreeAddress", "NewProxy", "Proxy"}

// TestTestsWithServersCarryTheirTag: a test file that uses realserver for more than
// the end of TestMain, without the tag, would have make test compile a server. Every
// other tag needs a target too: make test-all would not run what carries it.
func TestTestsWithServersCarryTheirTag(t *testing.T) {
	tagged, peers := 0, peerTags(t)
	known := slices.Concat(testTags(t), peers, []string{"linux", "unix", "race"})
	walk(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") || path.Dir(name) == "internal/streamtest/realserver" {
			return
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		tags := buildTags(t, syntax)
		if slices.Contains(tags, serverTag) {
			tagged++
		} else if call := startsServers(syntax); call != "" {
			t.Errorf("%s: realserver.%s: begin the file with //go:build %s", name, call, serverTag)
		}
		for _, tag := range tags {
			if slices.Contains(peers, tag) && !strings.HasPrefix(name, "bench/") {
				t.Errorf("%s: build tag %q: test-all leaves it out, so only tests of other people's servers in bench may have it", name, tag)
			} else if !slices.Contains(known, tag) {
				t.Errorf("%s: build tag %q: name it in TAGS of the Makefile, and run it in test-all", name, tag)
			}
		}
	})
	if tagged == 0 {
		t.Error("no test file carries the tag")
	}
}

// TestAllTagsAreTested: each tag of the Makefile has a target of its own, and lint
// looks at what carries it. test-all runs the tests with each tag but those of PEERS:
// they test other people's servers, and CI does not install those.
func TestAllTagsAreTested(t *testing.T) {
	tags := slices.Concat(testTags(t), peerTags(t))
	for _, tag := range tags {
		inMakefile(t, `^test-`+tag+`:.*(?:\n\t.*)*?\n\t@(?:cd bench && )?\$\(GO_TEST\) -tags `+tag+` ()`)
	}
	inMakefile(t, `^test-all: .*\n\t@.* test-modules LENGTH= TAGGED='-tags \$\(TAGS\)'()$`)
	inMakefile(t, `for tags in "" \$\(TAGS\) [^;]*\$\(PEERS\)([^;]*); do .*go vet`)
	inMakefile(t, `staticcheck -tags \$\(TAGS\),\$\(PEERS\)()`)
	without := regexp.MustCompile(`(?m)^//go:build .*!(` + strings.Join(tags, "|") + `)\b`)
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		if text, err := os.ReadFile(name); err != nil {
			t.Error(err)
		} else if without.Match(text) {
			t.Errorf("%s is built only without a tag: staticcheck does not look at it", name)
		}
	})
}

// testTags returns the build tags of tests that the Makefile names, peerTags those that
// test-all leaves out.
func testTags(t *testing.T) []string {
	t.Helper()
	return strings.Fields(inMakefile(t, `^TAGS  := (.+)`))
}

func peerTags(t *testing.T) []string {
	t.Helper()
	return strings.Fields(inMakefile(t, `^PEERS := (.+)`))
}

// inMakefile returns the first group of the only match.
func inMakefile(t *testing.T, pattern string) string {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?m)"+pattern).FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		t.Fatalf("%d lines of the Makefile match %q, want one", len(found), pattern)
	}
	return found[0][1]
}

// startsServers returns a function of realserver that the file uses, other than
// Main, or "".
func startsServers(f *ast.File) (call string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isIdent(s.X, "realserver") && !slices.Contains(withoutServers, s.Sel.Name) {
			call = s.Sel.Name
		}
		return true
	})
	return call
}

// buildTags returns the tags that a file must be built with.
func buildTags(t *testing.T, f *ast.File) (tags []string) {
	t.Helper()
	for _, group := range f.Comments {
		if group.Pos() > f.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				t.Fatal(err)
			}
			expr.Eval(func(tag string) bool { tags = append(tags, tag); return true })
		}
	}
	return tags
}

// TestTagsAreSeen shows the matchers what they must catch.
func TestTagsAreSeen(t *testing.T) {
	for source, want := range map[string]string{
		"//go:build servers\n\npackage x\nvar _ = realserver.Start": "Start",
		"package x\nvar _ = realserver.Main":                        "",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := startsServers(f); got != want || slices.Contains(buildTags(t, f), serverTag) != (want != "") {
			t.Errorf("%s\nstarts servers with %q, tags %q", source, got, buildTags(t, f))
		}
	}
}

func isIdent(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	skip := []string{".git", "node_modules", "testdata", "bin", "profile"}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return fs.SkipDir
		case !d.IsDir():
			visit(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
