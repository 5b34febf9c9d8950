package licenses

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Source is a folder with the files of a commit.
type Source struct {
	Folder  string
	Version string // semantic, without a v
	Tagged  bool   // exactly this version is tagged
	Commit  string
	Time    time.Time // of the commit
	cache   string    // of the go command; empty: the usual one
}

// ReadSource returns the source in a working tree of Git.
func ReadSource(ctx context.Context, folder string) (Source, error) {
	commit, err := git(ctx, folder, "rev-parse", "HEAD")
	if err != nil {
		return Source{}, err
	}
	seconds, err := git(ctx, folder, "log", "-1", "--format=%ct")
	if err != nil {
		return Source{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Source{}, err
	}
	changed, err := git(ctx, folder, "status", "--porcelain")
	if err != nil {
		return Source{}, err
	}
	// Without a tag before the commit, describe fails, and that is not an error.
	described, _ := git(ctx, folder, "describe", "--tags", "--long", "--match", "v[0-9]*")
	version, err := semantic(described, commit, changed != "")
	tagged := described != "" && !strings.Contains(version, "+")
	return Source{Folder: folder, Version: version, Tagged: tagged, Commit: commit, Time: time.Unix(unix, 0).UTC()}, err
}

// Copy copies the files that Git tracks or would track, and returns the same source there, which
// is compiled without what the go command has cached if fresh is set.
func (s Source) Copy(ctx context.Context, folder string, fresh bool) (Source, error) {
	names, err := git(ctx, s.Folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return Source{}, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(s.Folder, name), filepath.Join(folder, "files", name)); err != nil {
			return Source{}, err
		}
	}
	s.Folder = filepath.Join(folder, "files")
	if fresh {
		s.cache = filepath.Join(folder, "cache")
	}
	return s, nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) { // tracked, and removed from the working tree
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// Target is a platform as the go command names it.
type Target struct{ OS, Arch string }

// String returns the target as in linux/amd64.
func (t Target) String() string { return t.OS + "/" + t.Arch }

// Compile writes a static program for a target into a file. What it writes depends only on the
// source and on the version of Go.
func (s Source) Compile(ctx context.Context, t Target, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	variables := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", s.Version, s.Commit)
	c := s.goCommand(ctx, t, "build", "-ldflags", variables, "-o", file, program)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build for %v: %w\n%s", t, err, out)
	}
	return nil
}

// program is the package of the program.
const program = "./cmd/gateway"

func (s Source) goCommand(ctx context.Context, t Target, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = s.Folder
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false -mod=readonly")
	if s.cache != "" {
		c.Env = append(c.Env, "GOCACHE="+s.cache)
	}
	return c
}

func git(ctx context.Context, folder string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = folder
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, problem.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
