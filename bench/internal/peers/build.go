package peers

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// product is the module of the gateway, benches the module of the benchmarks.
const (
	product = "github.com/watchtide/watchtide"
	benches = product + "/bench"
)

// build compiles a command of a module, without the race detector and other
// options of the bench's own build, and returns its path. It is quick the second
// time, or after any go build: Go caches its results. The bench runs in a folder of
// its module.
func build(ctx context.Context, o Options, module, pkg string) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("no module %s: run the bench in its folder: %w", module, err)
	}
	out := filepath.Join(o.WorkDir, "bin", path.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", out, "./"+pkg)
	cmd.Dir = strings.TrimSpace(string(dir)) // a module lists the dependencies of its own commands only
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, said)
	}
	return out, nil
}
