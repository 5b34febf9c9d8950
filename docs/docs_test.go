// Package docs_test checks the documentation against the code: configurations
// load, code is that of the examples, links have a target.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	yamlparser "github.com/goccy/go-yaml/parser"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/files"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/web"
)

const configuration = "configuration.md"

// pages are the documents that users read, by their path from here.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names := []string{"../README.md"}
	for _, pattern := range []string{"*.md", "sources/*.md", "../examples/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if !slices.Contains(names, configuration) {
		t.Fatalf("no %s among the documents %v", configuration, names)
	}
	out := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.ToSlash(name)] = string(text)
	}
	return out
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks returns the contents of the fenced blocks of a language.
func blocks(page, language string) (out []string) {
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	return out
}

// TestConfigurationsLoad loads every configuration that is shown, with the loader
// of serve. Kubernetes manifests must be valid YAML.
func TestConfigurationsLoad(t *testing.T) {
	env := config.Environment{Getenv: func(string) (string, bool) { return "example", true }, ReadFile: namedFiles(t)}
	loaded := 0
	for name, page := range pages(t) {
		for i, text := range blocks(page, "yaml") {
			if strings.HasPrefix(text, "apiVersion:") {
				if _, err := yamlparser.ParseBytes([]byte(text), 0); err != nil {
					t.Errorf("%s, block %d: %v", name, i+1, err)
				}
				continue
			}
			c, err := config.Parse(fmt.Sprintf("%s, block %d", name, i+1), []byte(text), env)
			if err != nil {
				t.Error(err)
				continue
			}
			if loaded++; len(c.Watches) == 0 {
				t.Errorf("%s, block %d: declares no watch, so that serve would refuse it", name, i+1)
			}
		}
	}
	if loaded < 3 {
		t.Errorf("found %d configurations, want those of %s and of the README", loaded, configuration)
	}
}

// knownKeys reads the keys that the loader knows, in the tags of its structs.
func knownKeys(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../internal/config/*.go")
	sections, errOfSections := filepath.Glob("../internal/config/auth/*.go")
	if err != nil || errOfSections != nil || len(files) == 0 || len(sections) == 0 {
		t.Fatalf("no loader: %v, %v", err, errOfSections)
	}
	files = append(files, sections...)
	var keys []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				keys = append(keys, keysInTag(field.Tag)...)
			}
			return true
		})
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// keysInTag returns the keys that a struct tag declares: the first word, and
// another one as an option for files.
func keysInTag(tag *ast.BasicLit) (keys []string) {
	if tag == nil {
		return nil
	}
	text, _ := strconv.Unquote(tag.Value)
	key, options, _ := strings.Cut(reflect.StructTag(text).Get("yaml"), ",")
	for option := range strings.SplitSeq(options, ",") {
		if files, ok := strings.CutPrefix(option, "files="); ok {
			keys = append(keys, files)
		}
	}
	if key != "" && key != "-" {
		keys = append(keys, key)
	}
	return keys
}

var row = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|")

// TestEveryKeyIsDescribed: each key of the loader is in the reference, in a table
// or as a word of its own, and every table lists only keys that the loader knows.
func TestEveryKeyIsDescribed(t *testing.T) {
	page := pages(t)[configuration]
	known := knownKeys(t)
	if len(known) < 30 {
		t.Fatalf("found only the keys %v in the loader", known)
	}
	for _, key := range known {
		if !regexp.MustCompile("`" + key + "[`:]").MatchString(page) {
			t.Errorf("%s does not describe %s", configuration, key)
		}
	}
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("%s describes %s, which the loader does not know", configuration, m[1])
		}
	}
}

// TestDefaults compares the defaults of the reference with those of the code,
// where the code exposes them.
func TestDefaults(t *testing.T) {
	defaults := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(pages(t)[configuration], -1) {
		defaults[m[1]] = append(defaults[m[1]], m[2])
	}
	mib := func(n int) string { return fmt.Sprintf("`%dMiB`", n>>20) }
	c := config.Default()
	for key, want := range map[string][]string{
		"listen":            {"`" + c.HTTP.Listen + "`", "`" + config.DefaultGRPC + "`", "`" + c.Operations.Listen + "`"},
		"enabled":           {fmt.Sprintf("`%t`", c.Metrics.Enabled)},
		"max_value_bytes":   {mib(store.DefaultMaxValueBytes), mib(files.DefaultMaxValueBytes)},
		"rescan":            {"`" + strings.TrimSuffix(files.DefaultRescan.String(), "0s") + "`"},
		"interval":          {"`" + host.DefaultInterval.String() + "`"},
		"keepalive":         {"`" + strings.TrimSuffix(grpcsource.DefaultKeepalive.String(), "0s") + "`"},
		"max_message_bytes": {mib(grpcsource.DefaultMaxMessageBytes), mib(consul.DefaultMaxMessageBytes)},
		"probe_interval":    {"`" + consul.DefaultProbe.String() + "`"},
		"list_interval":     {"`" + strings.TrimSuffix(consul.DefaultRelist.String(), "0s") + "`"},
	} {
		if !slices.Equal(defaults[key], want) {
			t.Errorf("%s: the default of %s is %v, want %v", configuration, key, defaults[key], want)
		}
	}
	if !slices.Contains(defaults["max_bytes"], mib(store.DefaultMaxBytes)) {
		t.Errorf("%s: the defaults of max_bytes are %v, want %s among them", configuration, defaults["max_bytes"], mib(store.DefaultMaxBytes))
	}
}

// programFile matches a block that is a file of a program.
var programFile = regexp.MustCompile(`\A// (\w+\.go)\npackage main\n`)

// TestCodeIsThatOfTheRepository: Go code in a guide that is no program is the literal contract. Programs
// are run by TestPrograms.
func TestCodeIsThatOfTheRepository(t *testing.T) {
	contract, err := os.ReadFile("../stream/source.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, page := range pages(t) {
		for _, block := range blocks(page, "go") {
			if programFile.MatchString(block) {
				continue
			}
			found++
			if !strings.Contains(unindented(string(contract)), unindented(block)) {
				t.Errorf("%s: this is neither a program nor in the code:\n%s", name, block)
			}
		}
	}
	if found == 0 {
		t.Error("found no code, want the contract of a source")
	}
}

// unindented drops the indentation of every line.
func unindented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		out.WriteString(strings.TrimLeft(line, "\t "))
	}
	return out.String()
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksLeadSomewhere checks links to files and to headings of this repository.
func TestLinksLeadSomewhere(t *testing.T) {
	all, found := pages(t), 0
	for name, page := range all {
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			found++
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
				continue
			}
			inDocs := strings.TrimPrefix(filepath.ToSlash(file), "../docs/")
			if anchor != "" && !slices.Contains(headings(all[inDocs]), anchor) {
				t.Errorf("%s: link to %s: there is no such heading", name, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("found no links at all")
	}
}

// headings returns the anchors of a page, as GitHub makes them.
func headings(page string) (out []string) {
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(line, "#"); ok {
			out = append(out, web.Anchor(strings.TrimLeft(text, "#")))
		}
	}
	return out
}

// TestCommandsOfTheRepositoryExist: targets of make and programs of bench that the documents
// name are there.
func TestCommandsOfTheRepositoryExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, page := range pages(t) {
		for _, block := range slices.Concat(blocks(page, "console"), blocks(page, "sh")) {
			for _, m := range regexp.MustCompile(`(?m)^(?:\$ )?(?:\w+=\S+ )?make ([a-z-]+)`).FindAllStringSubmatch(block, -1) {
				found++
				if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
					t.Errorf("%s: make %s: there is no such target", name, m[1])
				}
			}
			for _, m := range regexp.MustCompile(`-C bench .*?\./(\w+)`).FindAllStringSubmatch(block, -1) {
				found++
				if _, err := os.Stat("../bench/" + m[1]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d commands only", found)
	}
}
