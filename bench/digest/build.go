package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What is measured, in this order everywhere.
const (
	with    = 0
	without = 1
)

// Of the function that hashes a resource, the build without digests has nothing.
const (
	hashes = "func Of(key string, value []byte, encoding string) Hash {\n"
	none   = hashes + "\treturn 0\n}\n\nfunc unused(key string, value []byte, encoding string) Hash {\n"
)

// build compiles this command as it is, and without digests.
func build(ctx context.Context, dir string) (programs [2]string, err error) {
	const module = "github.com/watchtide/watchtide"
	found, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", module+"/internal/digest").Output()
	if err != nil {
		return programs, fmt.Errorf("no package internal/digest: run the bench in its folder: %w", err)
	}
	overlay, err := withoutHashes(filepath.Join(strings.TrimSpace(string(found)), "hash.go"), dir)
	if err != nil {
		return programs, err
	}
	for i, more := range [][]string{with: nil, without: {"-overlay", overlay}} {
		programs[i] = filepath.Join(dir, fmt.Sprint("digest", i))
		arguments := append([]string{"build", "-buildvcs=false", "-o", programs[i]}, more...)
		if said, err := exec.CommandContext(ctx, "go", append(arguments, module+"/bench/digest")...).CombinedOutput(); err != nil {
			return programs, fmt.Errorf("go %v: %w\n%s", arguments, err, said)
		}
	}
	return programs, nil
}

// withoutHashes writes an overlay for the go command in which a source file hashes nothing, and returns
// its name.
func withoutHashes(source, dir string) (overlay string, err error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(text), hashes, none, 1)
	if changed == string(text) {
		return "", fmt.Errorf("%s has no line %q", source, strings.TrimSpace(hashes))
	}
	to := filepath.Join(dir, "hash.go")
	if err := os.WriteFile(to, []byte(changed), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {source: to}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}
