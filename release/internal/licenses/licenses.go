// Package licenses collects the licence texts of what a program is made from: Go and its standard
// library, the Go modules that are linked into it, and the npm packages in its dashboard. A [Source] is
// what a release is made from: a commit, its version and its files.
package licenses

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// FileName is the name of the text in archives, packages and images.
const FileName = "THIRD-PARTY-LICENSES.txt"

const introduction = `Watchtide is licensed under the Apache License, Version 2.0: see LICENSE.
This program also contains the following software, under the licences below.

`

// pageFile has the texts of the dashboard's packages. Vite writes it when it builds the page.
const pageFile = "internal/web/page/assets/licenses.txt"

// Text returns the licence texts for a program of a target, which was compiled from a source.
func Text(ctx context.Context, from Source, target Target, program []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	packages, err := from.Packages(ctx, target)
	if err != nil {
		return nil, err
	}
	found := texts{}
	if err := found.addGo(packages, info.GoVersion); err != nil {
		return nil, err
	}
	for _, m := range Modules(info) {
		if err := found.addModule(packages, m.Path, m.Version); err != nil {
			return nil, err
		}
	}
	page, err := os.ReadFile(filepath.Join(from.Folder, pageFile))
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(introduction), found.text(), []byte(ruler("npm packages in the dashboard")), page), nil
}

// Modules returns the modules of others in a program.
func Modules(info *debug.BuildInfo) (out []*debug.Module) {
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, info.Main.Path+"/") {
			continue // such as the client
		}
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, m)
	}
	return out
}

// texts has the names of the files with each text, by the text.
type texts map[string][]string

// addGo adds the licence of Go, which is that of its standard library.
func (t texts) addGo(packages []Package, version string) error {
	for _, p := range packages {
		if p.Standard {
			root := strings.TrimSuffix(p.Dir, filepath.FromSlash("/src/"+p.ImportPath))
			return t.addFolder(root, "the Go standard library, "+version)
		}
	}
	return fmt.Errorf("no package of the standard library among %d packages", len(packages))
}

// addModule adds the licences in the folders of a module that the program uses, and above them.
func (t texts) addModule(packages []Package, name, version string) error {
	folders, before := foldersOf(packages, name, version), t.count()
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if err := t.addFolder(folder, folders[folder]); err != nil {
			return err
		}
	}
	if t.count() == before {
		return fmt.Errorf("module %s %s: no licence in %d folders: want a file such as LICENSE", name, version, len(folders))
	}
	return nil
}

// foldersOf returns the folders of the packages of a module, and all above them up to its root, with
// what to call them.
func foldersOf(packages []Package, name, version string) map[string]string {
	folders := map[string]string{}
	for _, p := range packages {
		if p.Module.Path != name || p.Module.Version != version {
			continue
		}
		folders[p.Module.Dir] = name + " " + version
		inside, _ := filepath.Rel(p.Module.Dir, p.Dir)
		for ; inside != "."; inside = filepath.Dir(inside) {
			folders[filepath.Join(p.Module.Dir, inside)] = name + " " + version + ", " + filepath.ToSlash(inside)
		}
	}
	return folders
}

func (t texts) addFolder(folder, owner string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isLicense(e) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		key := strings.Trim(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
		t[key] = append(t[key], owner+": "+e.Name())
	}
	return nil
}

var (
	licenseName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)`)
	codeSuffix  = regexp.MustCompile(`(?i)\.(go|s|c|h|proto|json|ya?ml|toml|sh|py|tmpl|tpl|header)$`)
)

func isLicense(e fs.DirEntry) bool {
	return e.Type().IsRegular() && licenseName.MatchString(e.Name()) && !codeSuffix.MatchString(e.Name())
}

// count returns how many files there are.
func (t texts) count() (n int) {
	for _, names := range t {
		n += len(names)
	}
	return n
}

// text returns each text once, below the names of all files that have it, in the order of names.
func (t texts) text() []byte {
	type entry struct{ heading, text string }
	var entries []entry
	for text, names := range t {
		slices.Sort(names)
		entries = append(entries, entry{strings.Join(slices.Compact(names), "\n"), text})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.heading, b.heading) })
	var out bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&out, "%s%s\n\n", ruler(e.heading), e.text)
	}
	return out.Bytes()
}

func ruler(heading string) string {
	line := strings.Repeat("=", 80)
	return line + "\n" + heading + "\n" + line + "\n\n"
}
