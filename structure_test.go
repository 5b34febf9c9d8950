// Package watchtide_test tests the structure of the repository.
package watchtide_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module       = "github.com/watchtide/watchtide"
	otherModules = "*" // a pattern
)

// forbidden are imports that packages may not have, not even through others. A pattern is the path
// of a package, for this repository's without the module; with /... it covers the folders below too.
var forbidden = []struct {
	of, not []string
	but     string // the exception
	why     string
}{
	{core, []string{"net/http", otherModules}, "", "the core needs the standard library alone, and no transport: sources and encodings depend on it"},
	{append([]string{"stream/...", "internal/source/...", "internal/views", "internal/view/...", "internal/history"}, core...), []string{"gateway/...", "access/...", "internal/config/...", "cmd/...", "web/..."}, "", "what follows and stores collections knows neither requests nor principals"},
	{sources, sources, "", "a source knows the domain and its one upstream"},
	{[]string{"stream/sourcetest", "internal/streamtest"}, append([]string{"stream/store"}, sources...), "", "the conformance suite proves any source, so it knows none"},
	{[]string{"internal/view/..."}, []string{"internal/log", "stream/watch"}, "", "an expression reads values, wherever they are from"},
	{[]string{"access/..."}, []string{"gateway/...", "internal/log", "stream/watch", "internal/views"}, "", "credentials and rules know no watches"},
	{[]string{"gateway/..."}, append([]string{"stream/store", "internal/config/...", "cmd/..."}, sources...), "", "the gateway is handed its sources"},
	{[]string{"gateway/internal/shard"}, []string{"gateway/internal/rest", "gateway/internal/rpc"}, "", "the shards write bytes to sockets and streams of HTTP/2, whatever they say"},
	{[]string{"gateway/internal/limits", "gateway/internal/problem", "gateway/internal/wire"}, []string{"gateway/internal/authz", "gateway/internal/session"}, "", "limits, errors and bytes know no streams and no rules"},
	{[]string{"web/...", "internal/web", "docs", "openapi/..."}, []string{"gateway/...", "stream/...", "access/..."}, "web/dashboard/browser/upstream", "pages and documents know no gateway"},
	{[]string{"internal/config/..."}, []string{"cmd/..."}, "", "a configuration describes a gateway, and starts none"},
	{[]string{"cmd/gateway"}, []string{"internal/streamtest/...", "internal/disk/disktest", "stream/sourcetest", "internal/accesstest", "gateway/internal/gatewaytest/..."}, "", "test kits stay in tests"},
}

// core is the vocabulary, the log, and what keeps it in step with a source.
var core = []string{"stream", "internal/signal", "internal/storage", "internal/memory", "internal/frame", "internal/log/...", "stream/watch"}

var sources = []string{
	"internal/source/consul", "internal/source/etcd", "internal/source/files", "internal/source/gateway", "internal/source/grpc",
	"internal/source/host", "internal/source/kubernetes", "internal/source/nats", "internal/source/postgres",
}

func TestForbiddenImports(t *testing.T) {
	all := packages(t, ".", "./...")
	for _, row := range forbidden {
		of := slices.DeleteFunc(slices.Clone(all), func(p pkg) bool { return p.name() == row.but || !covered(row.of, p.name()) })
		if len(of) == 0 {
			t.Errorf("no package matches %v: mend the table", row.of)
		}
		for _, p := range of {
			for _, name := range p.reaches() {
				if covered(row.not, name) && name != p.name() {
					t.Errorf("%s depends on %s: %s", p.name(), name, row.why)
				}
			}
		}
	}
}

func covered(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		folder, below := strings.CutSuffix(p, "/...")
		if first, _, _ := strings.Cut(name, "/"); p == otherModules {
			return strings.Contains(first, ".")
		}
		return name == folder || below && strings.HasPrefix(name, folder+"/")
	})
}

// TestImageIsBuiltFromAllOfTheCommand: .dockerignore lets in every folder that it needs.
func TestImageIsBuiltFromAllOfTheCommand(t *testing.T) {
	ignore, err := os.ReadFile(".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t, ".", "-deps", "./cmd/gateway") {
		name, own := strings.CutPrefix(p.ImportPath, module+"/")
		folder, _, _ := strings.Cut(name, "/")
		if own && !slices.Contains(strings.Split(string(ignore), "\n"), "!"+folder) {
			t.Errorf("cmd/gateway is compiled from %s, which .dockerignore keeps out of the image: want the line !%s", name, folder)
		}
	}
}

// TestEveryPackageHasOneDoc: one file says what it is for, as go doc shows it in lists.
func TestEveryPackageHasOneDoc(t *testing.T) {
	docs := map[string]int{}
	for _, f := range code(t) {
		dir := path.Dir(f.path)
		docs[dir] += 0
		if f.syntax.Doc == nil || ast.IsGenerated(f.syntax) {
			continue
		}
		docs[dir]++
		want := "Package " + f.syntax.Name.Name + " "
		if f.syntax.Name.Name == "main" {
			want = "Command " + path.Base(dir) + " "
		}
		if !strings.HasPrefix(f.syntax.Doc.Text(), want) {
			t.Errorf("%s: want a package comment that begins with %q", f.path, want)
		}
	}
	for dir, n := range docs {
		if n != 1 {
			t.Errorf("%s: %d package comments, want one", dir, n)
		}
	}
}

// TestOnlyIngestStartsGoroutines, since each log has one writer.
func TestOnlyIngestStartsGoroutines(t *testing.T) {
	allowed := []string{
		"stream/watch/ingest.go",
		"internal/log/internal/pin/pace.go", // a timer, which takes versions away from slow readers and writes nothing
		"internal/log/digested.go",          // a timer, which frees what was made for readers and writes nothing
	}
	for _, f := range code(t) {
		if !covered(core, path.Dir(f.path)) || slices.Contains(allowed, f.path) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if what := startsGoroutine(n); what != "" {
				t.Errorf("%s: %s starts a goroutine: in the core only %v may; the caller's goroutine does the work", f.at(n), what, allowed)
			}
			return true
		})
	}
}

// startsGoroutine returns how n starts a goroutine, or "".
func startsGoroutine(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go"
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Go" || s.Sel.Name == "AfterFunc") {
			return s.Sel.Name
		}
	}
	return ""
}

// mentions are names of packages that only some may use: the writer of a log, since each log has
// one, and the registry, which leads to watches past all rules. What carries requests gets watches
// from authz.Lookup only.
var mentions = []struct {
	of, names string
	may       []string
}{
	{"internal/log", "Writer", []string{"internal/log", "stream/watch", "stream/store", "bench", "bench/digest"}},
	{"stream/watch", "Registry", []string{
		"gateway", "gateway/internal/authz", "gateway/internal/introspection", "gateway/internal/metrics", "gateway/internal/gatewaytest",
		"cmd/gateway/internal/commands", "internal/config", "stream/watch", "internal/streamtest/...", "stream/sourcetest", "bench/...", "informer/pods",
	}},
	{"time", "Sleep", nil}, // a sleeping goroutine can neither be cancelled nor woken
}

// TestMentions checks all files that are not tests.
func TestMentions(t *testing.T) {
	for _, f := range code(t) {
		for _, m := range mentions {
			if n := mentioned(f.syntax, m.of, m.names); n != nil && !covered(m.may, path.Dir(f.path)) {
				t.Errorf("%s: only %v may use a %s of %s", f.at(n), m.may, m.names, m.of)
			}
		}
	}
}

// mentioned returns where a file uses a name with a text in it, of a package; or nil.
func mentioned(f *ast.File, of, text string) (found ast.Node) {
	name := importName(f, of) // no identifier is ""
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.Contains(s.Sel.Name, text) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				found = n
			}
		}
		return found == nil
	})
	return found
}

// importName returns the name by which a file refers to a package; "" if it does not import it.
func importName(f *ast.File, of string) string {
	for _, i := range f.Imports {
		if p, _ := strconv.Unquote(i.Path.Value); p != of && p != module+"/"+of {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path.Base(of)
	}
	return ""
}

// TestTheseTestsCanFail shows the matchers something that they must catch.
func TestTheseTestsCanFail(t *testing.T) {
	p := pkg{ImportPath: module + "/gateway", Deps: []string{module + "/internal/source/etcd", "net/http"}}
	if names := p.reaches(); !covered(sources, names[0]) || !covered([]string{otherModules}, "golang.org/x/net") || covered([]string{otherModules}, names[0]) || covered(core, p.name()) || covered([]string{"a"}, "a/b") || !covered([]string{"a/..."}, "a/b") {
		t.Error("an import of a source by the gateway is not seen")
	}
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport old \""+module+"/internal/log\"\ntype _ = *old.Writer", 0)
	if err != nil || mentioned(f, "internal/log", "Writer") == nil || mentioned(f, "internal/log", "Log") != nil || mentioned(f, "log", "Writer") != nil {
		t.Errorf("the writer of a log is not seen: %v", err)
	}
	call := &ast.CallExpr{Fun: &ast.SelectorExpr{X: ast.NewIdent("wg"), Sel: ast.NewIdent("Go")}}
	if startsGoroutine(&ast.GoStmt{Call: call}) == "" || startsGoroutine(call) == "" {
		t.Error("a goroutine that starts is not seen")
	}
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Deps       []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// reaches returns the names of the packages that p depends on.
func (p pkg) reaches() (names []string) {
	for _, d := range p.Deps {
		names = append(names, strings.TrimPrefix(d, module+"/"))
	}
	return names
}

// packages runs go list in a module.
func packages(t *testing.T, dir string, arguments ...string) (out []pkg) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Deps"}, arguments...)...)
	cmd.Dir = dir
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(pipe); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("in %s: %v: %v", dir, cmd.Args, err)
		}
		out = append(out, p)
	}
	if err := cmd.Wait(); err != nil || len(out) == 0 {
		t.Fatalf("in %s: %v: %d packages: %v", dir, cmd.Args, len(out), err)
	}
	return out
}

// file is one Go file that is not a test.
type file struct {
	path   string // with slashes, relative to the repository
	syntax *ast.File
	set    *token.FileSet
}

func (f file) at(n ast.Node) string { return f.set.Position(n.Pos()).String() }

// code parses every Go file of the repository that is not a test.
func code(t *testing.T) (out []file) {
	t.Helper()
	set := token.NewFileSet()
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return
		}
		syntax, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file{path: name, syntax: syntax, set: set})
	})
	return out
}
