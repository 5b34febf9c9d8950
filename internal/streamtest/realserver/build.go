package realserver

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// builds are the builds of this process: module folder → *build.
var builds sync.Map

// build is the single attempt to build a module.
type build struct {
	once   sync.Once
	binary string
	err    error
}

// Build builds the nested module internal/streamtest/upstreams/<name>, whose module
// path ends in that name too, or the program that its go.mod names with a line
// "tool". It returns the path of the binary, which stays in the user's cache: if
// nothing has changed, a build only has the go command check that. It runs once in a
// process; any number of processes may build at once, and wait for each other. The
// test fails if it does not build.
func Build(t testing.TB, name string) (binary string) {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	return buildModule(t, filepath.Join(root, "internal/streamtest/upstreams", name))
}

func buildModule(t testing.TB, module string) string {
	t.Helper()
	one, _ := builds.LoadOrStore(module, new(build))
	b := one.(*build)
	b.once.Do(func() { b.binary, b.err = Compile(module) })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.binary
}

// Compile is Build for the module in a folder, whose path must be absolute, outside of a
// test. It holds a lock on a file meanwhile, which the system releases if the process
// dies.
func Compile(module string) (binary string, err error) {
	program, err := programOf(module)
	if err != nil {
		return "", fmt.Errorf("no server in %s: want a module with a main package, or with a tool, there: %w", module, err)
	}
	binary, err = binaryOf(module, program)
	if err != nil {
		return "", err
	}
	unlock, err := lock(binary + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	// Unlike go build -o, go install leaves an up-to-date binary alone.
	cmd := exec.Command("go", "install", "-buildvcs=false", "-ldflags=-s -w", program)
	cmd.Dir = module
	// A go.work around the repository does not know of this module.
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOBIN="+filepath.Dir(binary))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("in %s: %v: %w\n%s", module, cmd.Args, err, tail(out))
	}
	return binary, nil
}

// programOf returns the package of a module to build: its own, or the one that a
// line "tool" of its go.mod names, if the server is an unmodified third-party
// program.
func programOf(module string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mod)) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "tool" {
			return words[1], nil
		}
	}
	return ".", nil
}

// binaryOf returns the path of the binary of a module: the same one for the same
// checkout, in a folder that it creates.
func binaryOf(module, program string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // no home directory, as in some containers
	}
	sum := sha256.Sum256([]byte(module))
	dir := filepath.Join(cache, "watchtide-upstreams", fmt.Sprintf("%x", sum[:6]))
	name := path.Base(program)
	if program == "." {
		name = filepath.Base(module)
	}
	return filepath.Join(dir, name), os.MkdirAll(dir, 0o755)
}

// repository returns the folder of the main module, which is above the test: go test
// runs it in its package's folder, which may be one of another module.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module github.com/watchtide/watchtide\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of the main module in %s or above: want a test of this repository", start)
		}
	}
}

// Installed returns the path of a program of this machine, and skips the test if
// it is not installed. Folders that are only in an administrator's PATH count.
func Installed(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed", name)
	return ""
}
