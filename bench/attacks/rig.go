package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// rig is what an attack has: gateways of its own, and the rows that it reports.
//
// Owned by the goroutine of the attack.
type rig struct {
	program, dir, attack string
	rows                 []row
	targets              []*target
}

// report adds a row: what was measured, and whether that is within the bound.
func (r *rig) report(measured, bound string, withstood bool, figure string, args ...any) {
	r.rows = append(r.rows, row{r.attack, measured, fmt.Sprintf(figure, args...), bound, withstood})
}

// equal reports an answer, which must be the one that is wanted.
func (r *rig) equal(measured, want, got string) { r.report(measured, want, got == want, "%s", got) }

// atMost reports a time that must not exceed a bound.
func (r *rig) atMost(measured string, took, bound time.Duration) {
	r.report(measured, "≤ "+bound.String(), took <= bound, "%v", took.Round(time.Millisecond))
}

// Sections of configurations.
const (
	// listeners is needed by every configuration.
	listeners = `
http: { listen: "127.0.0.1:0" }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
`
	// accounts has the principals ann (staff), bob, root (admins) and writer (writers), and
	// roles for their groups. The file is written by start.
	accounts = `
auth: { tokens_file: DIR/tokens }
roles:
  anyone: { when: "true" }
  staff: { when: '"staff" in principal.groups' }
  admins: { when: '"admins" in principal.groups' }
  writers: { when: '"writers" in principal.groups || "admins" in principal.groups' }
`
)

// groups are those of the principals.
var groups = map[string]string{"ann": "staff", "bob": "", "root": "admins", "writer": "writers"}

// token returns the bearer token of a principal.
func token(who string) string { return who + "-token-" + strings.Repeat("0123456789abcdef", 3) }

func tokens() string {
	var b strings.Builder
	for who, group := range groups {
		fmt.Fprintf(&b, "%s  sha256:%x  %s\n", who, sha256.Sum256([]byte(token(who))), group)
	}
	return b.String()
}

// target is a gateway that is attacked.
type target struct {
	*process.Gateway
	dir string // of its configuration
	log *log
}

// start starts a gateway, which ends with the attack. In the configuration, DIR is the
// folder of its file and of further files, by name.
func (r *rig) start(ctx context.Context, configuration string, files map[string]string) (*target, error) {
	dir, err := r.write(configuration, files)
	if err != nil {
		return nil, err
	}
	return r.startIn(ctx, dir, nil)
}

// write writes a configuration, as start does, and returns its folder.
func (r *rig) write(configuration string, files map[string]string) (dir string, err error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(r.dir, "gateway"); err != nil {
		return "", err
	}
	all := map[string]string{"tokens": tokens(), "gateway.yaml": strings.ReplaceAll(configuration, "DIR", dir)}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// startIn starts a gateway with the configuration in a folder; dial may be nil.
func (r *rig) startIn(ctx context.Context, dir string, dial process.Dial) (t *target, err error) {
	t = &target{dir: dir, log: &log{}}
	if t.Gateway, err = process.StartBehind(ctx, r.program, filepath.Join(dir, "gateway.yaml"), t.log, dial); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, t.log)
	}
	r.targets = append(r.targets, t)
	return t, nil
}

// command runs another command of the program, and returns all that it wrote, and its exit code.
func (r *rig) command(ctx context.Context, args ...string) (output string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program, args...)
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	return string(text), cmd.ProcessState.ExitCode(), err
}

// close ends the gateways. One that has panicked did not withstand.
func (r *rig) close() {
	for _, t := range r.targets {
		t.Stop()
		if strings.Contains(t.log.String(), "panic") {
			r.report("the gateway panics", "never", false, "see %s", t.dir)
		}
	}
}

// log is what a gateway has logged. Any goroutine may use it.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns everything logged so far.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
