package pack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// NPMPackage is a package in a folder of the source.
type NPMPackage struct {
	Folder  string
	License []byte
	Version string // semantic
	Time    time.Time
}

// manifest is the part of package.json that says what is packed.
type manifest struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Files   []string `json:"files"`
}

// Make builds the package, and returns its name and its archive. The bytes depend on the sources
// and on the lock file, and not on the version of npm.
func (p NPMPackage) Make(ctx context.Context) (string, []byte, error) {
	if err := p.build(ctx); err != nil {
		return "", nil, err
	}
	text, err := os.ReadFile(filepath.Join(p.Folder, "package.json"))
	if err != nil {
		return "", nil, err
	}
	m, text, err := p.versioned(text)
	if err != nil {
		return "", nil, err
	}
	files, err := p.files(m, text)
	if err != nil {
		return "", nil, err
	}
	data, err := TarGzip(files, p.Time)
	return fmt.Sprintf("%s-%s.tgz", strings.NewReplacer("@", "", "/", "-").Replace(m.Name), p.version()), data, err
}

// version returns the version as npm has it: without the build, which registries do not keep.
func (p NPMPackage) version() string {
	version, _, _ := strings.Cut(p.Version, "+")
	return version
}

// build installs the tools that the lock file names, unless they are there, and builds.
func (p NPMPackage) build(ctx context.Context) error {
	if !p.installed() {
		if err := p.npm(ctx, "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
			return err
		}
	}
	return p.npm(ctx, "run", "--silent", "build")
}

// installed reports whether npm has installed what the lock file says. It records that in a file.
func (p NPMPackage) installed() bool {
	lock, err := os.Stat(filepath.Join(p.Folder, "package-lock.json"))
	if err != nil {
		return false
	}
	record, err := os.Stat(filepath.Join(p.Folder, "node_modules/.package-lock.json"))
	return err == nil && record.ModTime().After(lock.ModTime())
}

func (p NPMPackage) npm(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "npm", args...)
	c.Dir = p.Folder
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// versioned returns what package.json says, with the version of the release in place of its own.
func (p NPMPackage) versioned(text []byte) (manifest, []byte, error) {
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return manifest{}, nil, fmt.Errorf("package.json: %w", err)
	}
	old, version := fmt.Appendf(nil, "\"version\": %q", m.Version), fmt.Appendf(nil, "\"version\": %q", p.version())
	if m.Version == "" || bytes.Count(text, old) != 1 {
		return manifest{}, nil, fmt.Errorf("package.json: want one line with %s", old)
	}
	return m, bytes.Replace(text, old, version, 1), nil
}

// files returns the files of the archive, all below package/, which npm expects.
func (p NPMPackage) files(m manifest, text []byte) ([]File, error) {
	files := []File{
		{Name: "package/package.json", Mode: 0o644, Data: text},
		{Name: "package/LICENSE", Mode: 0o644, Data: p.License},
	}
	for _, name := range m.Files {
		if name == "LICENSE" {
			continue // that of the repository
		}
		found, err := p.found(name)
		if err != nil {
			return nil, err
		}
		files = slices.Concat(files, found)
	}
	return files, nil
}

// found returns a file of the folder, or all files below a folder in it.
func (p NPMPackage) found(name string) ([]File, error) {
	path := filepath.Join(p.Folder, name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(path)
		return []File{{Name: "package/" + name, Mode: 0o644, Data: data}}, err
	}
	files, err := Folder(path)
	for i := range files {
		files[i].Name = "package/" + name + "/" + files[i].Name
	}
	return files, err
}
