//go:build unix

package commands

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// logged is a command that appends the event, and the file that it appends to.
func logged(t *testing.T) (line, log string) {
	log = filepath.Join(t.TempDir(), "log")
	return "cat >> " + log, log
}

func linesOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// expectLog compares what a command has appended.
func expectLog(t *testing.T, name string, want ...string) {
	t.Helper()
	if got := linesOf(t, name); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// catchUp runs the command for what has changed since it was run last.
func catchUp(t *testing.T, server, state, line string, more ...string) {
	t.Helper()
	args := append([]string{"watch", "notes", "--server", server, "--state", state, "--exec", line, "--until", "end_of_snapshot"}, more...)
	if code, _, stderr := command(t, args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
}

func up(key, revision, value string) string {
	return fmt.Sprintf(`{"type":"upsert","watch":"notes","key":%q,"revision":%q,"value":%s}`, key, revision, value)
}

func down(key, revision string) string {
	return fmt.Sprintf(`{"type":"delete","watch":"notes","key":%q,"revision":%q}`, key, revision)
}

func TestWatchRunsACommandForEachChange(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	g.put("b", `2`)
	state := filepath.Join(t.TempDir(), "state")
	w := start(t, "watch", "notes", "--server", g.url(), "--state", state, "--exec", `cat; echo "$WATCHTIDE_TYPE $WATCHTIDE_WATCH $WATCHTIDE_KEY $WATCHTIDE_REVISION"`)
	awaitComplete(t, state)
	g.put("a", `3`)
	g.put("c/d", `4`)
	g.remove("b")
	w.expect(up("a", "3", "3"), "upsert notes a 3", up("c/d", "4", "4"), "upsert notes c/d 4", down("b", "5"), "delete notes b 5")
	w.signals <- syscall.SIGTERM
	if code := w.awaitCode(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
}

// awaitComplete waits until a state says that the first snapshot is complete.
func awaitComplete(t *testing.T, state string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for ticker := time.NewTicker(5 * time.Millisecond); ; <-ticker.C {
		if text, _ := os.ReadFile(state); strings.Contains(string(text), `"complete":true`) {
			ticker.Stop()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the first snapshot is not complete")
		}
	}
}

func TestWatchRunsACommandForWhatChangedMeanwhile(t *testing.T) {
	g := serve(t)
	g.put("same", `1`)
	g.put("a", `2`)
	g.put("b", `3`)
	state := filepath.Join(t.TempDir(), "state")
	line, log := logged(t)
	catchUp(t, g.url(), state, line)
	expectLog(t, log, "")
	g.put("a", `4`)
	g.put("a", `5`)
	g.remove("b")
	catchUp(t, g.url(), state, line)
	want := []string{down("b", "6"), up("a", "5", "5")}
	expectLog(t, log, want...)
	catchUp(t, g.url(), state, line)
	expectLog(t, log, want...)
}

func TestWatchRunsACommandForTheFirstStateIfAsked(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	state := filepath.Join(t.TempDir(), "state")
	line, log := logged(t)
	for range 2 {
		catchUp(t, g.url(), state, line, "--exec-initial")
		expectLog(t, log, up("a", "1", "1"))
	}
}

// A reset with another epoch, while the process runs and after a restart.
func TestWatchRunsACommandForWhatAResetChanges(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	one, two := serve(t, "--config", file(t, "gateway.yaml", quick)), serve(t, "--config", file(t, "gateway.yaml", quick))
	for i := range 50 {
		one.put(fmt.Sprint("same", i), fmt.Sprint(i))
	}
	one.put("changed", `"old"`) // at 51
	one.put("gone", `1`)
	two.put("changed", `"new"`)
	two.put("added", `1`)
	for i := range 50 {
		two.put(fmt.Sprint("same", 49-i), fmt.Sprint(49-i)) // at other revisions
	}
	there := []string{up("changed", "1", `"new"`), up("added", "2", "1"), down("gone", "52")}
	back := []string{up("changed", "51", `"old"`), up("gone", "52", "1"), down("added", "52")}
	t.Run("running", func(t *testing.T) {
		p := newProxy(t, one.http)
		state := filepath.Join(t.TempDir(), "state")
		w := start(t, "watch", "notes", "--server", p.url(), "--state", state, "--exec", "cat")
		awaitComplete(t, state)
		p.cut(two.http)
		w.expect(there[2], there[1], there[0]) // what differs: deletes, and then the keys in order
		p.cut(one.http)
		w.expect(back[2], back[0], back[1])
	})
	t.Run("restarted", func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "state")
		line, log := logged(t)
		catchUp(t, one.url(), state, line)
		catchUp(t, two.url(), state, line)
		catchUp(t, one.url(), state, line)
		expectLog(t, log, slices.Concat(there, back)...)
	})
}

func TestWatchRunsACommandForSeveralWatches(t *testing.T) {
	g := serve(t, "--config", file(t, "gateway.yaml", "sources: { s: { type: store } }\nwatches: { a: { source: s }, b: { source: s } }"))
	put := func(watch, key string) {
		t.Helper()
		if status, body := g.do("PUT", "/v1/watches/"+watch+"/resources/"+key, "1"); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
	}
	g.do("GET", "/v1/watches/a/resources", "")
	g.do("GET", "/v1/watches/b/resources", "")
	put("a", "1")
	state := filepath.Join(t.TempDir(), "state")
	run := func(want string) {
		t.Helper()
		code, stdout, stderr := command(t, "watch", "b", "a", "--server", g.url(), "--state", state, "--until", "end_of_snapshot", "--exec", `echo $WATCHTIDE_WATCH $WATCHTIDE_KEY`)
		got := strings.Split(strings.TrimSpace(stdout), "\n")
		slices.Sort(got)
		if code != 0 || strings.Join(got, ", ") != want {
			t.Errorf("exit code %d, got %q, want %q: %s", code, got, want, stderr)
		}
	}
	run("")
	put("a", "2")
	put("b", "1")
	put("b", "2")
	run("a 2, b 1, b 2")
	run("")
}

// separate returns the command as a process of its own. Wait returns when the commands that it
// runs have ended too: they share its stderr.
func separate(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Stderr = newLines()
	return c
}

// The command ends the process that runs it, after and before it has done its work: it is run
// again for the same change, which is never lost.
func TestWatchRunsACommandAgainAfterAKill(t *testing.T) {
	for name, c := range map[string]struct {
		line string // with the names of the log and of a file that is there at the second time
		want []string
	}{
		"after the work":  {"cat >> %[1]s; test -e %[2]s || { touch %[2]s; kill -9 $PPID; }", []string{up("b", "2", "2"), up("b", "2", "2"), up("c", "3", "3")}},
		"before the work": {"test -e %[2]s || { touch %[2]s; kill -9 $PPID; exit; }; cat >> %[1]s", []string{up("b", "2", "2"), up("c", "3", "3")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := serve(t)
			g.put("a", `1`)
			dir := t.TempDir()
			state, log := filepath.Join(dir, "state"), filepath.Join(dir, "log")
			line := fmt.Sprintf(c.line, log, filepath.Join(dir, "second"))
			catchUp(t, g.url(), state, line)
			g.put("b", `2`)
			g.put("c", `3`)
			w := separate(t, "watch", "notes", "--server", g.url(), "--state", state, "--exec", line)
			if err := w.Run(); err == nil || w.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("it ended with %v, want SIGKILL", err)
			}
			catchUp(t, g.url(), state, line)
			expectLog(t, log, c.want...)
			catchUp(t, g.url(), state, line)
			expectLog(t, log, c.want...)
		})
	}
}

// Processes that are killed at any moment, one after the other, leave the same files in the end
// as one that runs all the time.
func TestWatchWithACommandSurvivesKills(t *testing.T) {
	one, two := serve(t, "--config", file(t, "gateway.yaml", quick)), serve(t, "--config", file(t, "gateway.yaml", quick))
	one.awaitPrimed()
	two.awaitPrimed()
	dir := t.TempDir()
	state, files := filepath.Join(dir, "state"), filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	line := `cd ` + files + ` && case $WATCHTIDE_TYPE in upsert) sed 's/.*"value"://; s/}$//' > $WATCHTIDE_KEY;; delete) rm -f $WATCHTIDE_KEY;; esac`
	g := one
	for round := range 12 {
		if round%5 == 4 {
			g = map[*served]*served{one: two, two: one}[g] // another epoch
		}
		w := separate(t, "watch", "notes", "--server", g.url(), "--state", state, "--exec", line, "--exec-initial", "--quiet")
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		for i := range 4 + round%3*3 {
			key := fmt.Sprint("k", (round+i)%5)
			if status, _ := g.do("GET", "/v1/watches/notes/resources/"+key, ""); status == 200 && i%3 == 0 {
				g.remove(key)
			} else {
				g.put(key, fmt.Sprint(100*round+i))
			}
		}
		if round%3 == 0 {
			awaitComplete(t, state)
		}
		_ = w.Process.Kill()
		_ = w.Wait()
	}
	catchUp(t, g.url(), state, line, "--exec-initial")
	expectFiles(t, g, files)
}

// expectFiles compares files with the resources.
func expectFiles(t *testing.T, g *served, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, body := g.do("GET", "/v1/watches/notes/resources", "")
	if n := strings.Count(body, `"key":`); n != len(entries) {
		t.Errorf("%d files, %d resources: %s", len(entries), n, body)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`"value":%s}`, strings.TrimSpace(string(text))); !strings.Contains(body, `"key":"`+e.Name()+`"`) || !strings.Contains(body, want) {
			t.Errorf("%s has %q, which is not in %s", e.Name(), text, body)
		}
	}
}

// A command that runs when SIGTERM comes may finish, and is not run again.
func TestWatchLetsItsCommandFinish(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	dir := t.TempDir()
	state, goOn := filepath.Join(dir, "state"), filepath.Join(dir, "go-on")
	if err := syscall.Mkfifo(goOn, 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, "watch", "notes", "--server", g.url(), "--state", state, "--exec", "echo started; read x < "+goOn+"; cat")
	awaitComplete(t, state)
	g.put("b", `2`)
	g.put("c", `3`)
	w.expect("started")
	w.signals <- syscall.SIGTERM
	if err := os.WriteFile(goOn, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	w.expect(up("b", "2", "2"))
	if code := w.awaitCode(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	line, log := logged(t)
	catchUp(t, g.url(), state, line)
	expectLog(t, log, up("c", "3", "3"))
}

func TestWatchRepeatsACommandThatFails(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	state := filepath.Join(t.TempDir(), "state")
	line, log := logged(t)
	catchUp(t, g.url(), state, line)
	g.put("b", `2`)
	g.put("c", `3`)
	code, stdout, stderr := command(t, "watch", "notes", "--server", g.url(), "--state", state, "--exec", "cat; exit 3", "--exec-retries", "0")
	if code != 1 || stdout != up("b", "2", "2")+"\n" || !strings.Contains(stderr, `the command failed for upsert of "b" in notes: exit status 3`) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	catchUp(t, g.url(), state, line)
	expectLog(t, log, up("b", "2", "2"), up("c", "3", "3"))
}

func TestExecCommandLine(t *testing.T) {
	g := serve(t)
	g.awaitPrimed()
	state := filepath.Join(t.TempDir(), "state")
	w := start(t, "watch", "notes", "--server", g.url(), "--state", state, "--exec", "true")
	awaitComplete(t, state)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a state in use":          {[]string{"--exec", "true", "--state", state}, 1, "another process uses it"},
		"a state of another view": {[]string{"--exec", "true", "--state", state, "--prefix", "x"}, 1, "another process uses it"},
		"a state without exec":    {[]string{"--state", state}, 2, "are for --exec"},
		"with a condition":        {[]string{"--exec", "true", "--wait-for", "true"}, 2, "want one of them"},
		"retries":                 {[]string{"--exec", "true", "--exec-retries", "-2"}, 2, "--exec-retries -2"},
		"no folder":               {[]string{"--exec", "true", "--state", "/does/not/exist"}, 1, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, append([]string{"watch", "notes", "--server", g.url()}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr)
			}
		})
	}
	w.signals <- os.Interrupt
	w.awaitCode()
	code, _, stderr := command(t, "watch", "notes", "--server", g.url(), "--exec", "true", "--state", state, "--prefix", "x")
	if code != 1 || !strings.Contains(stderr, "other watches or another view") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Without --state there is one state for each command, in the home directory.
func TestExecHasAStateByDefault(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	home := t.TempDir()
	t.Setenv("HOME", home)
	g := serve(t)
	g.put("a", `1`)
	run := func(line string) string {
		t.Helper()
		code, stdout, stderr := command(t, "watch", "notes", "--server", g.url(), "--until", "end_of_snapshot", "--exec", line)
		if code != 0 || !strings.Contains(stderr, filepath.Join(home, ".local/state/watchtide/exec-")) {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		return stdout
	}
	run("cat")
	g.put("b", `2`)
	if got := run("cat "); got != "" {
		t.Errorf("another command has printed %q", got)
	}
	if got := run("cat"); got != up("b", "2", "2")+"\n" {
		t.Errorf("the command has printed %q", got)
	}
}

func TestWatchPrintsOnlyChanges(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	one, two := serve(t, "--config", file(t, "gateway.yaml", quick)), serve(t, "--config", file(t, "gateway.yaml", quick))
	for _, g := range []*served{one, two} {
		g.put("same", `0`)
	}
	one.put("gone", `1`)
	p := newProxy(t, one.http)
	w := start(t, "watch", "notes", "--server", p.url(), "--changes-only")
	one.awaitSubscriber()
	one.put("a", `2`)
	w.expect(up("a", "3", "2"))
	p.cut("")
	w.logs.await(t, "disconnected")
	one.put("a", `3`)
	p.cut(one.http)
	w.expect(up("a", "4", "3"))
	p.cut(two.http)
	w.expect(down("a", "1"), down("gone", "1"))
}

// awaitSubscriber waits until a stream has got the whole snapshot.
func (s *served) awaitSubscriber() {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for ticker := time.NewTicker(5 * time.Millisecond); ; <-ticker.C {
		_, body := s.do("GET", "/v1/subscribers", "")
		if strings.Contains(body, `"position":"notes@`) && strings.Contains(body, `"lag":0`) {
			ticker.Stop()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no subscriber has the snapshot: %s", body)
		}
	}
}

func TestWatchQuietly(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	code, stdout, stderr := command(t, "watch", "notes", "--server", g.url(), "--quiet", "--wait-for", "count == 1")
	if code != 0 || stdout != "" || stderr != "" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "watch", "notes", "--server", "http://127.0.0.1:1", "-q", "--timeout", "300ms")
	if code != 3 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--timeout is over") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	g.put("b", `2`)
	state := filepath.Join(t.TempDir(), "state")
	code, stdout, stderr = command(t, "watch", "notes", "--server", g.url(), "-q", "--state", state, "--exec", "cat", "--exec-initial", "--until", "end_of_snapshot")
	if code != 0 || strings.Count(stdout, "\n") != 2 || stderr != "" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestTheScriptOfTheGuide runs the example of docs/following-changes.md, with a fake nginx that
// refuses a file once.
func TestTheScriptOfTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/following-changes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```sh\n")
	script, _, found := strings.Cut(text, "```\n")
	if !found {
		t.Fatal("the guide has no script")
	}
	g := serve(t, "--config", file(t, "gateway.yaml", "sources: { s: { type: store } }\nwatches: { backends: { source: s } }"))
	put := func(key, value string) {
		t.Helper()
		g.do("GET", "/v1/watches/backends/resources", "")
		if status, body := g.do("PUT", "/v1/watches/backends/resources/"+key, value); status >= 300 {
			t.Fatalf("%d %s", status, body)
		}
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"watchtide":       "#!/bin/sh\n" + asCommand + "=1 exec '" + os.Args[0] + "' \"$@\"\n",
		"nginx":           "#!/bin/sh\necho \"$@\" >> reloads\ntest -e refused || { touch refused; exit 1; }\n",
		"reload-backends": strings.ReplaceAll(script, "http://127.0.0.1:8080", g.url()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	run := func(want int, conf string, reloads int) {
		t.Helper()
		code, _, stderr := command(t, "watch", "backends", "--server", g.url(), "--exec-initial", "--exec", "./reload-backends",
			"--exec-retries", "0", "--state", filepath.Join(dir, "state"), "--until", "end_of_snapshot")
		if code != want {
			t.Fatalf("exit code %d, want %d: %s", code, want, stderr)
		}
		expectLog(t, filepath.Join(dir, "backends.conf"), strings.Split(conf, "\n")...)
		if got := linesOf(t, filepath.Join(dir, "reloads")); len(got) != reloads || got[0] != "-s reload" {
			t.Errorf("nginx was called with %q, want %d times", got, reloads)
		}
	}
	put("a", `"10.0.0.1:80"`)
	run(1, "server 10.0.0.1:80;", 1)
	run(0, "server 10.0.0.1:80;", 2)
	put("b", `"10.0.0.2:80"`)
	run(0, "server 10.0.0.1:80;\nserver 10.0.0.2:80;", 3)
	g.do("DELETE", "/v1/watches/backends/resources/a", "")
	run(0, "server 10.0.0.2:80;", 4)
	if err := os.WriteFile(filepath.Join(dir, "watchtide"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("./reload-backends").Run(); err == nil {
		t.Error("the script does not fail without a gateway")
	}
	expectLog(t, filepath.Join(dir, "backends.conf"), "server 10.0.0.2:80;")
}
