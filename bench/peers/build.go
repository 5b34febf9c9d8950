package peers

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
)

// module is the prefix of import paths of this repository.
const module = "github.com/watchtide/watchtide/"

// build compiles a command of this repository, without the race detector and
// other options of the bench's own build, and returns its path. It is quick the
// second time, or after any go build: Go caches its results.
func build(ctx context.Context, o Options, pkg string) (string, error) {
	out := filepath.Join(o.WorkDir, "bin", path.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", out, module+pkg)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, said)
	}
	return out, nil
}
