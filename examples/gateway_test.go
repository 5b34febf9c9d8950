//go:build servers

package examples_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// patience is how long a test waits for what must happen. Only failing tests wait that long.
const patience = time.Minute

// example is a folder of examples, copied to where a test may write, and a gateway with its
// configuration.
type example struct {
	t       *testing.T
	dir     string
	address string // of the gateway, host:port
}

// program is the command as it is shipped, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "watchtide-examples", "watchtide")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", path, "../cmd/gateway")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return string(out), err
	}
	return path, nil
})

// copied returns an example without its gateway, for a test that prepares something first.
func copied(t *testing.T, name string) *example {
	t.Helper()
	e := &example{t: t, dir: t.TempDir(), address: realserver.FreeAddress(t)}
	if err := os.CopyFS(e.dir, os.DirFS(name)); err != nil {
		t.Fatal(err)
	}
	return e
}

// serve starts the gateway, at a free port instead of the configured one.
func (e *example) serve() {
	e.t.Helper()
	path, err := program()
	if err != nil {
		e.t.Fatalf("%v: %s", err, path)
	}
	realserver.Command{Path: path, Dir: e.dir, Address: e.address,
		Args: []string{"serve", "--config", "watchtide.yaml", "--http", e.address, "--grpc", "127.0.0.1:0", "--operations", "127.0.0.1:0"}}.Start(e.t)
}

// replace replaces a text in a file of the example.
func (e *example) replace(name, old, with string) {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		e.t.Fatalf("%s has no %s (%v)", name, old, err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, with)), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// command is a command in the folder of the example, with the gateway as its server.
func (e *example) command(name string, args ...string) *exec.Cmd {
	e.t.Helper()
	if strings.HasPrefix(name, "./") {
		name = filepath.Join(e.dir, name)
	}
	cmd := exec.CommandContext(e.t.Context(), name, args...)
	cmd.Dir = e.dir
	cmd.Env = append(os.Environ(), "WATCHTIDE_SERVER=http://"+e.address)
	cmd.WaitDelay = patience
	return cmd
}

// run runs a command to its end.
func (e *example) run(name string, args ...string) {
	e.t.Helper()
	if out, err := e.command(name, args...).CombinedOutput(); err != nil {
		e.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// write puts a resource into the store, or deletes it.
func (e *example) write(method, watch, key, value string) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, "http://"+e.address+"/v1/watches/"+watch+"/resources/"+key, strings.NewReader(value))
	if err != nil {
		e.t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer.Body)
		e.t.Fatalf("%s %s: %s: %s", method, key, answer.Status, text)
	}
}

// client keeps no connections, so that none outlives the test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// follow returns the lines of a stream.
func (e *example) follow(watch string) *bufio.Scanner {
	e.t.Helper()
	answer, err := client.Get("http://" + e.address + "/v1/watches/" + watch + "/events?format=ndjson")
	if err != nil {
		e.t.Fatal(err)
	}
	watchdog := time.AfterFunc(patience, func() { answer.Body.Close() })
	e.t.Cleanup(func() {
		watchdog.Stop()
		answer.Body.Close()
	})
	return bufio.NewScanner(answer.Body)
}

// await returns the next line that contains a text, and those before it.
func await(t *testing.T, lines *bufio.Scanner, text string) (before []string, found string) {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return before, lines.Text()
		}
		before = append(before, lines.Text())
	}
	t.Fatalf("no line with %s (%v), only:\n%s", text, lines.Err(), strings.Join(before, "\n"))
	return nil, ""
}

// needs skips a test if a program is not installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: the example is not tested", name)
		}
	}
}
