package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/watchtide/watchtide"

// inside are internal packages that the bench may import: its own, the log, which it also measures by
// itself, and what tests are made of.
var inside = []string{"bench/internal/", "internal/log", "internal/plot", "internal/frame", "internal/view", "internal/streamtest"}

// TestNoInternals: the path of this module begins with that of the gateway's, so that the go
// command lets it import internal packages, tests too. Of the gateway it measures what users get.
func TestNoInternals(t *testing.T) {
	list := exec.Command("go", "list", "-tags", "servers,peers", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	list.Stderr = os.Stderr
	raw, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(raw))); ; seen++ {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, imports := range [][]string{p.Imports, p.TestImports, p.XTestImports} {
			for _, imported := range imports {
				name, ours := strings.CutPrefix(imported, module+"/")
				may := slices.ContainsFunc(inside, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
				if ours && !may && strings.Contains("/"+name+"/", "/internal/") {
					t.Errorf("%s imports %s: want what anybody can import, or %v", p.ImportPath, imported, inside)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("the bench has no package")
	}
}

// TestBenchHasTheVersionsOfTheProduct: what a module requires is a minimum, so that a
// bench could measure a gateway that was built from newer libraries than the one that
// ships.
func TestBenchHasTheVersionsOfTheProduct(t *testing.T) {
	shipped := map[string]string{}
	for _, r := range requirements(t, "../go.mod") {
		shipped[r.Path] = r.Version
	}
	for _, r := range requirements(t, "go.mod") {
		if want, known := shipped[r.Path]; r.Path != module && (!known || r.Version != want) {
			t.Errorf("go.mod requires %s %s, ../go.mod %q: want the same version", r.Path, r.Version, want)
		}
	}
}

// requirement is a line of a go.mod.
type requirement struct{ Path, Version string }

func requirements(t *testing.T, file string) []requirement {
	t.Helper()
	raw, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var mod struct{ Require []requirement }
	if err := json.Unmarshal(raw, &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Require) == 0 {
		t.Fatalf("%s requires nothing", file)
	}
	return mod.Require
}
