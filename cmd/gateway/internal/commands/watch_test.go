package commands

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	helloSnapshot = `{"type":"hello","heartbeat_ms":15000,"watches":[{"watch":"notes","mode":"snapshot"}]}`
	helloResume   = `{"type":"hello","heartbeat_ms":15000,"watches":[{"watch":"notes","mode":"resume"}]}`
	resetInitial  = `{"type":"reset","watch":"notes","reason":"initial"}`
)

func TestWatchWritesTheEventsAsTheyCome(t *testing.T) {
	g := serve(t)
	g.put("a", `{"n": 9007199254740993, "s": "<&>\u2028"}`)
	w := start(t, "watch", "notes", "--server", g.url())
	w.expect(helloSnapshot, resetInitial,
		`{"type":"upsert","watch":"notes","key":"a","revision":"1","value":{"n": 9007199254740993, "s": "<&>\u2028"}}`,
		`{"type":"end_of_snapshot","watch":"notes","revision":"1","count":1}`)
	g.put("b/c", `[1]`)
	w.expect(`{"type":"upsert","watch":"notes","key":"b/c","revision":"2","value":[1]}`)
	g.remove("a")
	w.expect(`{"type":"delete","watch":"notes","key":"a","revision":"3"}`)
	w.signals <- os.Interrupt
	if code := w.awaitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

// TestWatchResumesByDigest: a gateway that has started again, and knows no deletes from before, sends
// what differs, and that is what is printed.
func TestWatchResumesByDigest(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	dir := t.TempDir()
	put := func(name, value string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a.json", "1")
	put("b.json", "2")
	put("c.json", "3")
	conf := file(t, "files.yaml", `
stream: { drain_delay: 0s, prime_wait: 20s }
sources: { disk: { type: files, dir: "`+dir+`" } }
watches: { notes: { source: disk } }
`)
	g := serve(t, "--config", conf)
	w := start(t, "watch", "notes", "--server", g.url())
	content := regexp.MustCompile(`^{"type":"(reset|upsert|delete|end_of_snapshot)"`)
	await := func(want ...string) {
		t.Helper()
		for _, one := range want {
			line := ""
			for line = w.line(); !content.MatchString(line); line = w.line() {
			}
			if !strings.Contains(line, one) {
				t.Fatalf("%s, want %s", line, one)
			}
		}
	}
	await(`"reset"`, `"a`, `"b`, `"c`, `"end_of_snapshot"`)
	g.signals <- os.Interrupt
	g.awaitCode()
	put("b.json", "20")
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	serve(t, "--http", g.http, "--config", conf)
	await(`{"type":"delete","watch":"notes","key":"a`, `{"type":"upsert","watch":"notes","key":"b`, `"verify":true`)
}

func TestWatchUntilEndOfSnapshot(t *testing.T) {
	g := serve(t, "--demo")
	g.put("a", `1`)
	w := start(t, "watch", "notes", "mounts", "--server", g.url(), "--until", "end_of_snapshot")
	ends, last := 0, ""
	for line := range w.out {
		last = line
		if strings.HasPrefix(line, `{"type":"end_of_snapshot"`) {
			ends++
		}
	}
	if code := w.awaitCode(); code != 0 || ends != 2 || !strings.Contains(last, `"reason":"complete"`) {
		t.Errorf("exit code %d, %d snapshots ended, last line %s", code, ends, last)
	}
}

// TestWatchHasAMaxRate checks that the rate reaches the gateway, and that its answer to a wrong one is told.
func TestWatchHasAMaxRate(t *testing.T) {
	g := serve(t)
	g.put("a", `1`)
	code, stdout, _ := command(t, "watch", "notes", "--server", g.url(), "--until", "end_of_snapshot", "--max-rate", "2/s")
	if code != 0 || !strings.Contains(stdout, `"key":"a"`) {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
	code, _, stderr := command(t, "watch", "notes", "--server", g.url(), "--max-rate", "2/h")
	if code == 0 || !strings.Contains(stderr, `max_rate is "2/h": want a whole number of times, from 1 to 65535, for each second or minute`) {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

// TestWatchHasKeysFirst checks that they come before all others, and once more at their places.
func TestWatchHasKeysFirst(t *testing.T) {
	g := serve(t)
	for _, key := range []string{"a", "b", "c"} {
		g.put(key, `1`)
	}
	code, stdout, _ := command(t, "watch", "notes", "--server", g.url(), "--until", "end_of_snapshot", "--first", "c", "-o", "jsonpath={.key}")
	if got := strings.Fields(stdout); code != 0 || len(got) != 4 || got[0] != "c" || !slices.Contains(got[1:], "c") {
		t.Errorf("exit code %d, keys %q", code, got)
	}
	code, _, stderr := command(t, "watch", "notes", "--server", g.url(), "--first", "c", "--changes-only")
	if code != exitUsage || !strings.Contains(stderr, "--first is for the state at the beginning, which --changes-only leaves out") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestWatchNarrowsToAPrefix(t *testing.T) {
	g := serve(t)
	g.put("eu/a", `1`)
	g.put("us/b", `2`)
	code, stdout, _ := command(t, "watch", "notes", "--server", g.url(), "--until", "end_of_snapshot", "--prefix", "us/")
	if code != 0 || !strings.Contains(stdout, `"key":"us/b"`) || strings.Contains(stdout, `"eu/a"`) {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
}

func TestWatchWaitsForACondition(t *testing.T) {
	g := serve(t)
	w := start(t, "watch", "notes", "--server", g.url(), "--wait-for",
		`count == 2 && resources["web"].replicas >= 3 && !("old" in resources)`)
	w.expect(helloSnapshot, resetInitial, `{"type":"end_of_snapshot","watch":"notes","revision":"0","count":0}`)
	for _, step := range []func(){
		func() { g.put("old", `{}`) },
		func() { g.put("web", `{"replicas":3}`) }, // two, and one of them is old
		func() { g.put("db", `{}`) },
		func() { g.put("web", `{"replicas":2}`) },
		func() { g.remove("old") }, // two, and web is too small
	} {
		step()
		w.line()
		select {
		case code := <-w.code:
			t.Fatalf("ended too early with %d", code)
		default:
		}
	}
	g.put("web", `{"replicas":4}`)
	if code := w.awaitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, w.logs)
	}
}

// The condition is evaluated for each watch, and has to be true of all of them
// at the same time.
func TestWatchWaitsForEveryWatch(t *testing.T) {
	g := serve(t, "--config", file(t, "gateway.yaml",
		"sources: { s: { type: store } }\nwatches: { a: { source: s }, b: { source: s } }"))
	put := func(watch, key string) {
		t.Helper()
		if status, body := g.do("PUT", "/v1/watches/"+watch+"/resources/"+key, "1"); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
	}
	w := start(t, "watch", "a", "b", "--server", g.url(), "--wait-for", `watch == "a" ? count == 1 : count == 2`)
	for range 5 { // hello, and two empty snapshots
		w.line()
	}
	put("a", "1")
	w.line()
	put("b", "1")
	w.line()
	put("b", "2")
	if code := w.awaitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, w.logs)
	}
}

func TestWatchExitCodes(t *testing.T) {
	g := serve(t)
	g.put("a", `{"n":1}`)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"the condition is true already": {[]string{"notes", "--wait-for", "count == 1"}, 0, ""},
		"true, with until":              {[]string{"notes", "--until", "end_of_snapshot", "--wait-for", "count == 1"}, 0, ""},
		"unknown watch":                 {[]string{"nots"}, 1, `there is no watch "nots": did you mean "notes"?`},
		"no watch":                      {nil, 2, "requires at least 1 arg"},
		"a watch twice":                 {[]string{"notes", "notes"}, 2, `watch "notes" is named twice`},
		"until something else":          {[]string{"notes", "--until", "eos"}, 2, `--until "eos": want end_of_snapshot`},
		"a condition that is none":      {[]string{"notes", "--wait-for", "cuont > 1"}, 2, "undeclared reference to 'cuont'"},
		"a condition that is a number":  {[]string{"notes", "--wait-for", "count"}, 2, "want true or false"},
		"a negative timeout":            {[]string{"notes", "--timeout", "-1s"}, 2, "--timeout"},
		"a timeout that is none":        {[]string{"notes", "--timeout", "soon"}, 2, "--timeout"},
		"a server that is none":         {[]string{"notes", "--server", "127.0.0.1:8080"}, 2, "want a URL"},
		"timeout":                       {[]string{"notes", "--timeout", "50ms"}, 3, "--timeout is over"},
		"timeout of a condition": {[]string{"notes", "--wait-for", "count > 1", "--timeout", "200ms"}, 3,
			"--timeout is over; --wait-for is not true of notes, which has 1 resource"},
		"timeout of a condition that cannot be evaluated": {[]string{"notes", "--wait-for", `resources["b"].n == 1`, "--timeout", "200ms"}, 3,
			"--wait-for cannot be evaluated for notes, which has 1 resource: no such key: b"},
		"not true at the end of the snapshot": {[]string{"notes", "--until", "end_of_snapshot", "--wait-for", "count > 1"}, 4,
			"end_of_snapshot was reached; --wait-for is not true of notes"},
		"no server": {[]string{"notes", "--server", "http://127.0.0.1:1", "--timeout", "200ms"}, 3,
			"notes is not complete (offline: "},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"watch", "--server", g.url()}, c.args...)
			code, _, stderr := command(t, args...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr)
			}
			if c.code == 0 && stderr != "" {
				t.Errorf("stderr: %s", stderr)
			}
		})
	}
}

// proxy is between a client and a gateway, so that a test can cut connections
// and change the gateway behind it.
type proxy struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu.
	target string
	down   bool
	conns  []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cut("")
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.join(client)
	}
}

func (p *proxy) join(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		client.Close()
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	p.conns = append(p.conns, client, server)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		p.wg.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			way[0].Close()
			way[1].Close()
		})
	}
}

// cut breaks every connection; no target: no new ones are possible.
func (p *proxy) cut(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target, p.down = target, target == ""
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// quick is a configuration whose clients reconnect soon.
const quick = "stream: { retry: 100ms, drain_delay: 0s, drain: 200ms }\nsources: { local: { type: store } }\nwatches: { notes: { source: local } }"

func TestWatchResumesWhereItsConnectionBroke(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	g := serve(t, "--config", file(t, "gateway.yaml", quick))
	g.put("a", `1`)
	g.put("b", `2`)
	p := newProxy(t, g.http)
	w := start(t, "watch", "notes", "--server", p.url())
	for range 4 {
		w.line()
	}
	w.expect(`{"type":"end_of_snapshot","watch":"notes","revision":"2","count":2}`)
	for range 3 {
		p.cut("") // nothing is reachable while things change
		w.logs.await(t, "disconnected")
		g.remove("a")
		g.put("c", `3`)
		g.put("c", `4`)
		g.put("a", `5`)
		p.cut(g.http)
		w.expect(helloResume)
		state := map[string]string{}
		for line := ""; !strings.Contains(line, `"resumed":true`); {
			line = w.line()
			if strings.Contains(line, `"reset"`) {
				t.Fatalf("a full snapshot instead of a resume: %s", line)
			}
			if key, value, ok := upserted(line); ok {
				state[key] = value
			}
		}
		if state["c"] != "4" || state["a"] != "5" || state["b"] != "" {
			t.Errorf("what changed: %v", state)
		}
	}
	g.put("d", `6`)
	if key, value, _ := upserted(w.line()); key != "d" || value != "6" {
		t.Errorf("got %s = %s", key, value)
	}
}

// upserted reads the key and the value of an upsert of a number.
func upserted(line string) (key, value string, ok bool) {
	_, rest, ok := strings.Cut(line, `{"type":"upsert","watch":"notes","key":"`)
	if !ok {
		return "", "", false
	}
	key, rest, _ = strings.Cut(rest, `"`)
	_, value, _ = strings.Cut(rest, `"value":`)
	return key, strings.TrimSuffix(value, "}"), true
}

func TestWatchGoesOnAtAnotherGateway(t *testing.T) {
	one, two := serve(t, "--config", file(t, "gateway.yaml", quick)), serve(t, "--config", file(t, "gateway.yaml", quick))
	one.put("a", `1`)
	two.put("b", `2`)
	p := newProxy(t, one.http)
	w := start(t, "watch", "notes", "--server", p.url(), "--wait-for", `"b" in resources && count == 1`, "--timeout", "20s")
	for range 4 {
		w.line()
	}
	p.cut(two.http)
	w.expect(helloResume, `{"type":"delete","watch":"notes","key":"a","revision":"1"}`, `{"type":"upsert","watch":"notes","key":"b","revision":"1","value":2}`)
	if code := w.awaitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, w.logs)
	}
}

func TestWatchReconnectsAfterAGoodbye(t *testing.T) {
	one, two := serve(t, "--config", file(t, "gateway.yaml", quick)), serve(t, "--config", file(t, "gateway.yaml", quick))
	p := newProxy(t, one.http)
	w := start(t, "watch", "notes", "--server", p.url())
	for range 3 {
		w.line()
	}
	p.mu.Lock()
	p.target = two.http
	p.mu.Unlock()
	one.signals <- syscall.SIGTERM
	if line := w.line(); !strings.Contains(line, `{"type":"goodbye","reason":"draining","retry_ms":`) {
		t.Errorf("got %s", line)
	}
	w.expect(helloResume)
	if code := one.awaitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWatchWaitsForAServerThatStartsLater(t *testing.T) {
	g := serve(t)
	p := newProxy(t, g.http)
	p.cut("")
	w := start(t, "watch", "notes", "--server", p.url(), "--until", "end_of_snapshot")
	w.logs.await(t, "disconnected")
	p.cut(g.http)
	if code := w.awaitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, w.logs)
	}
}

// Nothing happens to the watch, and the loss of the reader is still noticed.
func TestQuietWatchEndsWhenItsReaderHasGone(t *testing.T) {
	g := serve(t)
	g.awaitPrimed()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "watch", "notes", "--server", g.url())
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Stdout = writer
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	kill := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	defer kill.Stop()
	lines := bufio.NewScanner(reader)
	for range 3 { // hello, reset, end_of_snapshot
		lines.Scan()
	}
	reader.Close()
	if err := c.Wait(); c.ProcessState.ExitCode() != 128+int(syscall.SIGPIPE) {
		t.Errorf("ended with %v, want exit code 141", err)
	}
}

func TestWatchEndsWhenItsReaderHasGone(t *testing.T) {
	g := serve(t)
	reader, writer := io.Pipe()
	reader.Close()
	logs := newLines()
	done := make(chan int, 1)
	go func() {
		done <- run(t.Context(), process{stdout: writer, stderr: logs, exit: func(int) {}}, []string{"watch", "notes", "--server", g.url()})
	}()
	select {
	case code := <-done:
		if code != 1 || strings.Count(logs.String(), "closed pipe") != 1 {
			t.Errorf("exit code %d: %s", code, logs)
		}
	case <-time.After(patience):
		t.Fatal("it continues without a reader")
	}
}
