package commands

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/watchtide/watchtide/access"
)

// withAudit is a configuration with an audit log.
const withAudit = `
auth: { tokens_file: %TOKENS%, audit: { file: audit.jsonl } }
sources: { local: { type: store } }
roles: { anyone: { when: "true" } }
watches:
  one: { source: local, allow: [{ role: anyone, read: "true" }] }
  two: { source: local, allow: [{ role: anyone, read: "true" }] }
  three: { source: local, allow: [{ role: anyone, read: "true" }] }
`

// TestAuditFileIsReopened on SIGHUP, also if the configuration has a mistake by then, and
// every line is in one of the files.
func TestAuditFileIsReopened(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	_, line, err := access.NewToken("sam", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(withAudit, "%TOKENS%", file(t, "tokens", line))
	conf := file(t, "gateway.yaml", text)
	audit := filepath.Join(filepath.Dir(conf), "audit.jsonl")
	c, logs := asProcess(t, "serve", "--config", conf, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	_, after, _ := strings.Cut(logs.await(t, `"msg":"listening"`), `"http":"`)
	address, _, _ := strings.Cut(after, `"`)
	ask := func(watch string) {
		t.Helper()
		if code, answer := fetch(t, http.DefaultTransport, "GET", "http://"+address+"/v1/watches/"+watch+"/resources", ""); code != 200 {
			t.Fatalf("%s: %d %s", watch, code, answer)
		}
	}
	moveTo := func(name, want string) {
		t.Helper()
		if err := os.Rename(audit, audit+name); err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		logs.await(t, want)
	}
	ask("one")
	moveTo(".1", `"msg":"configuration reloaded"`)
	ask("two")
	rewrite(t, conf, text+"nonsense: 1\n")
	logs.await(t, "not reloaded")
	moveTo(".2", `not reloaded: the old one stays in effect","reason":"SIGHUP"`)
	ask("three")
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v; stderr:\n%s", err, logs)
	}
	for name, want := range map[string]string{".1": "one", ".2": "two", "": "three"} {
		lines, err := os.ReadFile(audit + name)
		if err != nil || strings.Count(string(lines), "\n") != 1 || !strings.Contains(string(lines), `"watch":"`+want+`"`) {
			t.Errorf("%s%s: %q, %v: want the line of %s", audit, name, lines, err, want)
		}
		if info, err := os.Stat(audit + name); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("the mode of the file is %#o: want it to be closed to others", info.Mode().Perm())
		}
	}
}

// TestAuditFileThatCannotBeOpened is an error at start, and at a reload the old one stays.
func TestAuditFileThatCannotBeOpened(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no named pipes in directories")
	}
	_, line, err := access.NewToken("sam", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(withAudit, "%TOKENS%", file(t, "tokens", line))
	conf := file(t, "gateway.yaml", text)
	pipe := filepath.Join(filepath.Dir(conf), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	toPipe := strings.Replace(text, "audit.jsonl", "pipe", 1)
	code, _, stderr := command(t, "serve", "--config", file(t, "pipe.yaml", strings.Replace(text, "audit.jsonl", pipe, 1)), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	if code == 0 || !strings.Contains(stderr, "auth.audit.file: the audit log cannot be opened for writing") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	s := serve(t, "--config", conf)
	rewrite(t, conf, toPipe)
	s.logs.await(t, "auth.audit.file: the audit log cannot be opened for writing")
	s.logs.await(t, "the old one stays in effect")
	if code, _ := fetch(t, http.DefaultTransport, "GET", s.url()+"/v1/watches/one/resources", ""); code != 200 {
		t.Errorf("status %d", code)
	}
	s.signals <- syscall.SIGINT
	if code := s.awaitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	lines, err := os.ReadFile(filepath.Join(filepath.Dir(conf), "audit.jsonl"))
	if err != nil || !strings.Contains(string(lines), `"watch":"one"`) {
		t.Errorf("%q, %v", lines, err)
	}
}
