//go:build servers

package docs_test

import (
	"context"
	"go/format"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// program is the files of a program, by their names.
type program map[string]string

// programs returns the programs of a page. A file with the name of an earlier one begins another one.
func programs(page string) (out []program) {
	for _, block := range blocks(page, "go") {
		m := programFile.FindStringSubmatch(block)
		if m == nil {
			continue
		}
		if len(out) == 0 || out[len(out)-1][m[1]] != "" {
			out = append(out, program{})
		}
		out[len(out)-1][m[1]] = block
	}
	return out
}

// TestPrograms pastes the programs of the guides into a folder, compiles and runs them, and sends
// them what the page sends.
func TestPrograms(t *testing.T) {
	all := pages(t)
	for page, want := range map[string][]string{
		"embedding.md":        {"/live/v1/watches/colours/events", "/v1/watches/notes/events"},
		"writing-a-source.md": {"/v1/watches/articles/events"},
		"go-client.md":        {""},
	} {
		found := programs(all[page])
		if len(found) != len(want) {
			t.Errorf("%s has %d programs, want %d", page, len(found), len(want))
			continue
		}
		for i, p := range found {
			t.Run(strings.TrimSuffix(page, ".md"), func(t *testing.T) {
				address := realserver.FreeAddress(t)
				binary := p.compile(t, address)
				if want[i] == "" {
					follows(t, binary, address)
				} else {
					serves(t, binary, address, want[i])
				}
			})
		}
	}
}

// compile writes a program with another address, compiles it, and runs its test if it has one.
func (p program) compile(t *testing.T, address string) (binary string) {
	t.Helper()
	dir := t.TempDir()
	var files, tests []string
	for name, text := range p {
		if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
			t.Errorf("%s is not formatted: %v", name, err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "127.0.0.1:8080", address)), 0o600); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, file)
		if !strings.HasSuffix(name, "_test.go") {
			files = append(files, file)
		}
	}
	binary = filepath.Join(dir, "program")
	goTool(t, append([]string{"build", "-buildvcs=false", "-o", binary}, files...)...)
	if len(tests) > len(files) {
		goTool(t, append([]string{"test", "-count=1"}, tests...)...)
	}
	return binary
}

func goTool(t *testing.T, args ...string) {
	t.Helper()
	c := exec.Command("go", args...)
	c.Dir = ".." // where the packages are that it imports
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, out)
	}
}

// serves runs a program that is a gateway, and reads a snapshot of it.
func serves(t *testing.T, binary, address, path string) {
	t.Helper()
	realserver.Command{Path: binary, Address: address}.Start(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path+"?until=end_of_snapshot", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), "event: upsert") || !strings.Contains(string(body), "event: end_of_snapshot") {
		t.Errorf("%s: %s, %v, want a snapshot:\n%s", path, answer.Status, err, body)
	}
}

// follows runs a program that is a client of the gateway that the page describes.
func follows(t *testing.T, binary, address string) {
	t.Helper()
	served := filepath.Join(t.TempDir(), "watchtide")
	goTool(t, "build", "-buildvcs=false", "-o", served, "./cmd/gateway")
	realserver.Command{Path: served, Address: address, Env: []string{"XDG_STATE_HOME=" + t.TempDir()}, Args: []string{"serve", "--http", address, "--operations", "off"}}.Start(t)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	c := exec.CommandContext(ctx, binary)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	const want = "in_sync 1 resources at revision 1\n  milk: two litres\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(out, got); string(got) != want {
		t.Errorf("%v, printed\n%s\nwant\n%s", err, got, want)
	}
	stop()
	_ = c.Wait() // it was killed
}

// TestProgramsCanBeRecognised: a block without the name of its file is no program.
func TestProgramsCanBeRecognised(t *testing.T) {
	const file = "```go\n// a.go\npackage main\n```\n\n"
	for page, want := range map[string][]int{
		file: {1}, file + file: {1, 1}, file + "```go\n// b.go\npackage main\n```\n": {2}, "```go\npackage main\n```\n": nil,
	} {
		var got []int
		for _, p := range programs(page) {
			got = append(got, len(p))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: programs of %v files, want %v", page, got, want)
		}
	}
}
