// Package docs_test checks the documentation against the code: configurations
// load, code is that of the examples, links have a target.
package docs_test

import (
	"fmt"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/source/etcd"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"github.com/watchtide/watchtide/internal/source/nats"
	"github.com/watchtide/watchtide/internal/source/postgres"
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
	"time"

	yamlparser "github.com/goccy/go-yaml/parser"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/files"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/internal/web"
	"github.com/watchtide/watchtide/stream/store"
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
	var files []string
	for _, pattern := range []string{"../internal/config/*.go", "../internal/source/*/*.go", "../stream/store/store.go", "../gateway/config.go", "../internal/log/log.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
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

// TestDefaults compares the defaults of the reference with those of the code.
func TestDefaults(t *testing.T) {
	found := 0
	for section, defaults := range map[string][]any{
		"## `http`":              {config.Default().HTTP, gateway.DefaultHTTPSettings()},
		"## `grpc`":              {config.GRPC{Listen: config.DefaultGRPC}},
		"## `operations`":        {config.Default().Operations},
		"## `metrics`":           {config.Default().Metrics},
		"## `tracing`":           {config.Default().Tracing},
		"## `stream`":            {gateway.DefaultStreamSettings(), log.Retention{}.WithDefaults()},
		"### `type: store`":      {store.Config{MaxValueBytes: store.DefaultMaxValueBytes, MaxBytes: store.DefaultMaxBytes}},
		"### `type: host`":       {host.Config{Interval: host.DefaultInterval}},
		"### `type: grpc`":       {grpcsource.Config{Keepalive: grpcsource.DefaultKeepalive, MaxMessageBytes: grpcsource.DefaultMaxMessageBytes}},
		"### `type: files`":      {files.Config{MaxValueBytes: files.DefaultMaxValueBytes, MaxBytes: files.DefaultMaxBytes, Rescan: files.DefaultRescan}},
		"### `type: etcd`":       {etcd.Config{ConnectTimeout: etcd.DefaultConnectTimeout, RequestTimeout: etcd.DefaultRequestTimeout, StallAfter: etcd.DefaultStallAfter}},
		"### `type: kubernetes`": {kubernetes.Config{StallAfter: kubernetes.DefaultStallAfter}},
		"### `type: nats`":       {nats.Config{StallAfter: nats.DefaultStallAfter, PollInterval: nats.DefaultPollInterval}},
		"### `type: postgres`":   {postgres.Config{Publication: postgres.DefaultPublication, StallAfter: postgres.DefaultStallAfter, MaxRetainedWAL: postgres.DefaultMaxRetainedWAL}},
		"### `type: consul`":     {consul.Config{ProbeInterval: consul.DefaultProbe, ListInterval: consul.DefaultRelist, MaxMessageBytes: consul.DefaultMaxMessageBytes}},
	} {
		described := defaultsIn(t, section)
		for _, of := range defaults {
			for key, want := range defaultsOf(reflect.ValueOf(of)) {
				found++
				if !slices.Contains(described[key], want) {
					t.Errorf("%s: %s: the default of %s is %v, want %s", configuration, section, key, described[key], want)
				}
			}
		}
	}
	if found < 45 {
		t.Errorf("found only %d defaults in the code", found)
	}
}

// defaultsIn returns the defaults in the tables of a section, by key.
func defaultsIn(t *testing.T, heading string) map[string][]string {
	_, text, ok := strings.Cut(pages(t)[configuration], "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %s", configuration, heading)
	}
	if next := regexp.MustCompile("(?m)^##").FindStringIndex(text); next != nil {
		text = text[:next[0]]
	}
	out := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		out[m[1]] = append(out[m[1]], m[2])
	}
	return out
}

// defaultsOf returns what a user writes for each field of a section, by key. A field that is not set has
// no default, or one that a word describes.
func defaultsOf(section reflect.Value) map[string]string {
	out := map[string]string{}
	for i := range section.NumField() {
		f := section.Type().Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "" || key == "-" || section.Field(i).IsZero() {
			continue
		}
		switch v := section.Field(i).Interface().(type) {
		case time.Duration:
			text := v.String()
			for _, zero := range []string{"m0s", "h0m"} {
				if strings.HasSuffix(text, zero) {
					text = text[:len(text)-2]
				}
			}
			out[key] = "`" + text + "`"
		case int64:
			out[key] = "`" + size(v) + "`"
		case int:
			if out[key] = fmt.Sprintf("`%d`", v); options == "bytes" {
				out[key] = "`" + size(int64(v)) + "`"
			}
		default:
			out[key] = fmt.Sprintf("`%v`", v)
		}
	}
	return out
}

func size(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", n>>30)
	}
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}

// programFile matches a block that is a file of a program.
var programFile = regexp.MustCompile(`\A// (\w+\.go)\npackage main\n`)

// TestCodeIsThatOfTheRepository: Go code in a guide that is no program is the literal contract, or of an
// Example. Programs are run by TestPrograms.
func TestCodeIsThatOfTheRepository(t *testing.T) {
	var contract []byte
	for _, name := range []string{"../stream/source.go", "../client/example_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		contract = append(contract, text...)
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
			if anchor == "" {
				continue
			}
			page, ok := all[strings.TrimPrefix(filepath.ToSlash(file), "../docs/")]
			if !ok {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Error(err)
				}
				page = string(text)
			}
			if !slices.Contains(headings(page), anchor) {
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
