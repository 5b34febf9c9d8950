package licenses

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryModuleHasALicence: on each platform, since each links other modules.
func TestEveryModuleHasALicence(t *testing.T) {
	from := Source{Folder: "../../.."}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			packages, err := from.Packages(t.Context(), Target{OS: system, Arch: arch})
			if err != nil {
				t.Fatal(err)
			}
			modules := map[Module]bool{}
			for _, p := range packages {
				modules[p.Module] = true
			}
			delete(modules, Module{})
			if len(modules) < 60 {
				t.Errorf("%s/%s: only %d modules", system, arch, len(modules))
			}
			for m := range modules {
				if err := (texts{}).addModule(packages, m.Path, m.Version); err != nil {
					t.Errorf("%s/%s: %v", system, arch, err)
				}
			}
		}
	}
}

// TestEveryPackageOfThePageHasALicence: of those that the lock file installs for others than developers.
func TestEveryPackageOfThePageHasALicence(t *testing.T) {
	data, err := os.ReadFile("../../../web/dashboard/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("../../..", pageFile))
	if err != nil {
		t.Fatal(err)
	}
	for path, p := range lock.Packages {
		if path == "" || p.Dev {
			continue
		}
		heading := "## " + strings.TrimPrefix(path, "node_modules/") + " - " + p.Version + " ("
		if !strings.Contains(string(text), heading) {
			t.Errorf("%s lacks %q: run make dashboard", pageFile, heading)
		}
	}
}

// TestLicencesAreFound: in the folders of packages that are used, and above them; equal texts once.
func TestLicencesAreFound(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE": "ours\n", "NOTICE.txt": "note", "license.go": "package a", "used/LICENCE-MIT": "ours", "used/deep/COPYING.md": "copied",
		"unused/LICENSE": "not linked", "LICENSES/whole.txt": "a folder",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packages := []Package{{ImportPath: "m/used/deep", Dir: filepath.Join(root, "used/deep"), Module: Module{Path: "m", Version: "v1.0.0", Dir: root}}}
	got := texts{}
	if err := got.addModule(packages, "m", "v1.0.0"); err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("=", 80) + "\n"
	want := line + "m v1.0.0, used/deep: COPYING.md\n" + line + "\ncopied\n\n" +
		line + "m v1.0.0, used: LICENCE-MIT\nm v1.0.0: LICENSE\n" + line + "\nours\n\n" +
		line + "m v1.0.0: NOTICE.txt\n" + line + "\nnote\n\n"
	if text := string(got.text()); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if err := got.addModule(packages, "m", "v2.0.0"); err == nil || !strings.Contains(err.Error(), "m v2.0.0") {
		t.Errorf("a module without licence: %v, want an error that names it", err)
	}
}
