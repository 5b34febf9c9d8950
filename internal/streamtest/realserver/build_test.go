package realserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module writes a module with one file, and returns its folder.
func module(t *testing.T, source string) string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache))) // or the library is compiled again
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "server")
	for name, text := range map[string]string{"go.mod": "module server\n\ngo 1.26\n", "main.go": source} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBuildByManyAtOnce(t *testing.T) {
	dir := module(t, "package main\n\nfunc main() { println(\"it runs\") }\n")
	var all sync.WaitGroup
	paths := make([]string, 4)
	for i := range paths {
		all.Go(func() {
			binary, err := Compile(dir) // as from independent processes
			if err != nil {
				t.Error(err)
			}
			paths[i] = binary
		})
	}
	all.Wait()
	for _, p := range paths {
		if p != paths[0] {
			t.Errorf("built at %s and at %s: want one place", p, paths[0])
		}
	}
	out, err := exec.Command(buildModule(t, dir)).CombinedOutput()
	if err != nil || string(out) != "it runs\n" {
		t.Errorf("it prints %q (%v)", out, err)
	}
}

func TestBuildAgainDoesNothing(t *testing.T) {
	dir := module(t, "package main\n\nfunc main() {}\n")
	build := func() string {
		binary, err := Compile(dir)
		if err != nil {
			t.Fatal(err)
		}
		return binary
	}
	first := build() + ".first" // a second name, so that the file lives on if it is replaced
	if err := os.Link(build(), first); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(build())
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("an unchanged build writes the binary again")
	}
}

func TestBuildReportsCompilerErrors(t *testing.T) {
	_, err := Compile(module(t, "package main\n\nfunc main() { misspelt() }\n"))
	if err == nil || !strings.Contains(err.Error(), "undefined: misspelt") {
		t.Errorf("got %v: want the compiler's error", err)
	}
	_, err = Compile(filepath.Join(t.TempDir(), "absent"))
	if err == nil || !strings.Contains(err.Error(), "no server in") {
		t.Errorf("got %v: want the folder that is missing", err)
	}
}

func TestBuildOfThirdPartyProgram(t *testing.T) {
	dir := module(t, "package main\n\nfunc main() {}\n")
	program, err := programOf(dir)
	if err != nil || program != "." {
		t.Errorf("got %q, %v: want the module's own package", program, err)
	}
	mod := "module server\n\ngo 1.26\n\ntool example.com/far/daemon\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		t.Fatal(err)
	}
	if program, err = programOf(dir); err != nil || program != "example.com/far/daemon" {
		t.Errorf("got %q, %v: want the tool", program, err)
	}
	binary, err := binaryOf(dir, program)
	if err != nil || filepath.Base(binary) != "daemon" {
		t.Errorf("it is at %s (%v): want the name that go install gives it", binary, err)
	}
}

func TestRepositoryIsTheRootModule(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "structure_test.go")); err != nil {
		t.Errorf("%s is not the root: %v", root, err)
	}
	t.Chdir(filepath.Join(root, "bench", "soak"))
	if above, err := repository(); err != nil || above != root {
		t.Errorf("in another module %q, %v: want %s", above, err, root)
	}
	t.Chdir(t.TempDir())
	if _, err := repository(); err == nil {
		t.Error("a repository was found outside of any")
	}
}

func TestInstalled(t *testing.T) {
	if path := Installed(t, "go"); filepath.Base(path) != "go" {
		t.Errorf("got %s", path)
	}
	skipped := t.Run("absent", func(t *testing.T) {
		Installed(t, "no-such-program")
		t.Error("a program that is not there was found")
	})
	if !skipped {
		t.Error("want the test to be skipped")
	}
}
