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
	if gateway, err = BuildGateway(ctx, to); err != nil {
		return "", "", err
	}
	root, err := repository(ctx)
	if err != nil {
		return "", "", err
	}
	loader = filepath.Join(to, "loader")
	return gateway, loader, compile(ctx, filepath.Join(root, "bench"), "./internal/load/loader", loader)
}

// BuildGateway is Build of the gateway alone.
func BuildGateway(ctx context.Context, to string) (gateway string, err error) {
	root, err := repository(ctx)
	if err != nil {
		return "", err
	}
	gateway = filepath.Join(to, "gateway")
	return gateway, compile(ctx, root, "./cmd/gateway", gateway)
}

// repository returns the folder of the module that is measured.
func repository(ctx context.Context) (string, error) {
	const product = "github.com/watchtide/watchtide"
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", product).Output()
	if err != nil {
		return "", fmt.Errorf("no module %s: run the bench in its folder: %w", product, err)
	}
	return strings.TrimSpace(string(dir)), nil
}

func compile(ctx context.Context, dir, pkg, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", to, pkg)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, said)
	}
	return nil
}
