package process

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build compiles the gateway as it is shipped, with its symbols, and the load generator into
// a directory. It is to be called in a folder of the bench's module.
func Build(ctx context.Context, to string) (gateway, loader string, err error) {
	const product = "github.com/watchtide/watchtide"
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", product).Output()
	if err != nil {
		return "", "", fmt.Errorf("no module %s: run the bench in its folder: %w", product, err)
	}
	root := strings.TrimSpace(string(dir))
	gateway, loader = filepath.Join(to, "gateway"), filepath.Join(to, "loader")
	if err := compile(ctx, root, "./cmd/gateway", gateway); err != nil {
		return "", "", err
	}
	return gateway, loader, compile(ctx, filepath.Join(root, "bench"), "./load/loader", loader)
}

func compile(ctx context.Context, dir, pkg, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", to, pkg)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, said)
	}
	return nil
}
