package commands

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/openapi/watchtidev1"
)

func TestServeListensAndDrains(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	g := serve(t)
	g.awaitPrimed()
	if status, body := g.do("GET", "/readyz", ""); status != 200 {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if names := grpcWatches(t, g.grpc); !slices.Equal(names, []string{"notes"}) {
		t.Errorf("watches over gRPC: %q", names)
	}
	g.signals <- syscall.SIGTERM
	g.logs.await(t, `"msg":"draining"`)
	for status := 200; status != 503; status, _ = g.do("GET", "/readyz", "") {
	}
	g.put("milk", `"two litres"`) // everything else is served for stream.drain_delay
	if code := g.awaitCode(); code != 0 {
		t.Errorf("exit code %d, want 0; stderr:\n%s", code, g.logs)
	}
	if n := strings.Count(g.logs.String(), `"msg":"listening"`); n != 1 {
		t.Errorf("%d lines say listening, want one:\n%s", n, g.logs)
	}
}

// grpcWatches returns the names of the watches, over gRPC.
func grpcWatches(t *testing.T, address string) []string {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer, err := watchtidev1.NewWatchServiceClient(conn).ListWatches(t.Context(), &watchtidev1.ListWatchesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range answer.GetWatches() {
		names = append(names, w.GetName())
	}
	return names
}

func TestServeWithoutConfigurationIsAStoreWatchedAsNotes(t *testing.T) {
	g := serve(t)
	g.put("a", `{"n":1}`)
	if _, body := g.do("GET", "/v1/watches", ""); !strings.Contains(body, `"name":"notes","source":"local"`) ||
		strings.Count(body, `"name"`) != 1 || !strings.Contains(body, `"writable":true`) {
		t.Errorf("watches: %s", body)
	}
	if status, body := g.do("GET", "/v1/watches/notes/resources/a", ""); status != 200 || !strings.Contains(body, `"value":{"n":1}`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestServeDemoAddsThisMachine(t *testing.T) {
	g := serve(t, "--demo")
	_, body := g.do("GET", "/v1/watches", "")
	for _, name := range []string{"notes", "processes", "interfaces", "mounts"} {
		if !strings.Contains(body, `"name":"`+name+`"`) {
			t.Errorf("no watch %s: %s", name, body)
		}
	}
	w := start(t, "watch", "processes", "--server", g.url(), "--wait-for", `resources.exists(k, resources[k].pid > 0)`)
	if code := w.awaitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, w.logs)
	}
}

// TestServeTellsWhatIsKept, in its first line.
func TestServeTellsWhatIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.db")
	kept := file(t, "gateway.yaml", "sources: { local: { type: store, path: "+path+" } }\nwatches: { notes: { source: local } }")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"lost when this process ends", []string{"--demo"}},
		{"lost when this process ends", nil},
		{`"path":"` + path, []string{"--demo", "--config", kept}},
	} {
		g := serve(t, c.args...)
		first, _, _ := strings.Cut(g.logs.String(), "\n")
		if !strings.Contains(first, c.want) || !strings.Contains(first, `"source":"local"`) {
			t.Errorf("serve %v: first line %s, want %s", c.args, first, c.want)
		}
	}
}

// TestNotesAreKept in the folder for states by a gateway without a configuration, which says so in its first line. A
// second one at the same time, and one that has no such folder, starts all the same.
func TestNotesAreKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	t.Setenv("XDG_STATE_HOME", folder)
	path := filepath.Join(folder, "watchtide", "notes.db")
	begin := func(want string) (url string, end func()) {
		t.Helper()
		c, logs := asProcess(t, "serve", "--demo", "--http", "127.0.0.1:0", "--operations", "off")
		url, _, _ = strings.Cut(strings.SplitAfter(logs.await(t, `"msg":"listening"`), `"http":"`)[1], `"`)
		if first, _, _ := strings.Cut(logs.String(), "\n"); !strings.Contains(first, want) || !strings.Contains(first, `"source":"local"`) {
			t.Errorf("the first line is %s, want %s", first, want)
		}
		return "http://" + url + "/v1/watches/notes/resources/a", func() {
			_ = c.Process.Signal(os.Interrupt)
			if err := c.Wait(); err != nil {
				t.Errorf("%v:\n%s", err, logs)
			}
		}
	}
	const lost = "lost when this process ends"
	first, end := begin(`"path":"` + path)
	if status, body := fetch(t, http.DefaultTransport, "PUT", first, `"kept"`); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	second, endSecond := begin(lost)
	if status, body := fetch(t, http.DefaultTransport, "PUT", second, `"lost"`); status != 201 {
		t.Errorf("%d %s", status, body)
	}
	endSecond()
	end()
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	again, end := begin(`"path":"` + path)
	if _, body := fetch(t, http.DefaultTransport, "GET", again, ""); !strings.Contains(body, `"value":"kept"`) {
		t.Errorf("after a restart: %s", body)
	}
	end()

	given := t.TempDir() // by systemd
	t.Setenv("STATE_DIRECTORY", given+":/nowhere")
	_, end = begin(`"path":"` + filepath.Join(given, "notes.db"))
	end()
	if err := os.WriteFile(filepath.Join(given, "notes.db"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, end = begin(lost)
	end()
	t.Setenv("STATE_DIRECTORY", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	_, end = begin(lost)
	end()
}

func TestServeDemoBesideAConfiguration(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"own source":  {"sources: { machine: { type: host, interval: 100ms } }", ""},
		"no watches":  {"stream: { heartbeat: 1s }", ""},
		"taken watch": {"sources: { s: { type: store } }\nwatches: { mounts: { source: s } }", "has a watch mounts already"},
		"taken name":  {"sources: { machine: { type: store } }", "source machine that is not this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := file(t, "gateway.yaml", c.config)
			if c.want == "" {
				g := serve(t, "--demo", "--config", conf)
				if _, body := g.do("GET", "/v1/watches", ""); strings.Count(body, `"source":"machine"`) != 3 {
					t.Errorf("watches: %s", body)
				}
				return
			}
			if code, _, stderr := command(t, "serve", "--demo", "--config", conf); code != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

func TestServeRefusesToStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	conf := func(text string) string { return file(t, "gateway.yaml", text) }
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a port that is taken":      {[]string{"--http", taken.Addr().String()}, 1, "http: listen tcp"},
		"a gRPC port that is taken": {[]string{"--http", "127.0.0.1:0", "--grpc", taken.Addr().String()}, 1, "grpc: listen tcp"},
		"an operations port that is taken": {[]string{"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--operations", taken.Addr().String()}, 1,
			"operations: listen tcp"},
		"every interface":          {[]string{"--http", "0.0.0.0:0"}, 1, "--http 0.0.0.0:0: other machines can reach it"},
		"every interface, by file": {[]string{"--config", conf("http: { listen: \":0\" }")}, 1, `1:17: http.listen: ":0": other machines can reach it`},
		"credentials":              {[]string{"--auth", "basic"}, 2, `--auth "basic": want none`},
		"no port":                  {[]string{"--http", "localhost"}, 2, `--http "localhost": want host:port`},
		"no file":                  {[]string{"--config", "/does/not/exist.yaml"}, 1, "no such file"},
		"nothing to serve":         {[]string{"--config", conf("http: {}")}, 1, "nothing to serve"},
		"an error in the file":     {[]string{"--config", conf("htpp: {}")}, 1, `1:1: unknown key "htpp"`},
		"an argument":              {[]string{"now"}, 2, "unknown command"},
		"an unknown flag":          {[]string{"--prot", "1"}, 2, "unknown flag: --prot"},
		"an invalid format":        {[]string{"--log-format", "xml"}, 2, `"xml" for "--log-format" flag: want auto, text or json`},
		"an invalid level":         {[]string{"--log-level", "loud"}, 2, `"loud" for "--log-level" flag: want debug, info, warn or error`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, append([]string{"serve"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("exit code %d, want %d: %s%s", code, c.code, stdout, stderr)
			}
		})
	}
}

// An unreachable upstream is not an error: the watch reports priming, and the
// logs contain no secrets.
func TestServeStartsWithAnUnreachableUpstream(t *testing.T) {
	token := file(t, "token", "s3cret-token\n")
	conf := file(t, "gateway.yaml", `
stream: { drain_delay: 0s, prime_wait: 1ms }
sources:
  backend: { type: grpc, address: "127.0.0.1:1", metadata_files: { authorization: "`+token+`" } }
watches:
  services: { source: backend }
`)
	g := serve(t, "--config", conf, "--log-level", "debug")
	status, body := g.do("GET", "/v1/watches/services", "")
	if status != 200 || !strings.Contains(body, `"state":"priming"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := g.do("GET", "/readyz", ""); status != 503 {
		t.Errorf("/readyz: %d, want 503", status)
	}
	g.signals <- syscall.SIGTERM
	if code := g.awaitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(g.logs.String(), "s3cret") {
		t.Errorf("a secret was logged:\n%s", g.logs)
	}
}

// TestServeViews checks a view, and a view of that, of a watch that is written to.
func TestServeViews(t *testing.T) {
	config := file(t, "views.yaml", `
sources: { local: { type: store } }
watches:
  states: { view_of: red, fields: [state] }
  red: { view_of: notes, filter: 'value.team == "red"' }
  notes: { source: local }
`)
	g := serve(t, "--config", config)
	g.put("a", `{"team":"red","state":1,"more":[1,2]}`)
	g.put("b", `{"team":"blue","state":2}`)
	g.put("c", `{"team":"red","state":3}`)
	g.put("c", `{"team":"blue","state":4}`)
	want := `"resources":[{"key":"a","revision":"1","value":{"state":1}}]`
	for began := time.Now(); ; {
		_, body := g.do("GET", "/v1/watches/states/resources", "")
		if strings.Contains(body, want) && strings.Contains(body, `"revision":"4"`) {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("got %s, want %s", body, want)
		}
	}
	if status, body := g.do("PUT", "/v1/watches/red/resources/a", "1"); status != 405 {
		t.Errorf("a write to a view: %d %s", status, body)
	}
}

// TestServeNarrowsAtTheOtherGateway: a watch of a gateway source is narrowed by the other gateway.
func TestServeNarrowsAtTheOtherGateway(t *testing.T) {
	streams := make(chan url.Values, 1)
	core := ask(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case streams <- r.URL.Query():
		default:
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	conf := file(t, "edge.yaml", `
stream: { prime_wait: 1ms }
sources: { core: { type: gateway, url: "`+core.URL+`" } }
watches:
  failing: { source: core, watch: services, filter: '(value.state)!="passing"', labels: "app=web", fields: [state, node], prefix: eu/ }
`)
	if code, _, stderr := command(t, "config", "check", conf); code != 0 {
		t.Fatalf("config check: exit code %d: %s", code, stderr)
	}
	serve(t, "--config", conf)
	want := url.Values{
		"watch": {"services"}, "deletes": {"1"}, "prefix.services": {"eu/"}, "labels.services": {"app=web"},
		"filter.services": {`value.state != "passing"`}, "fields.services": {"node,state"}, "resume": {"digest"},
	}
	select {
	case got := <-streams:
		if got.Encode() != want.Encode() {
			t.Errorf("asked %v, want %v", got, want)
		}
	case <-time.After(patience):
		t.Fatal("the other gateway was not asked")
	}
}

func TestServeFollowsAnotherGateway(t *testing.T) {
	core := serve(t)
	core.put("eu/a", `{"n":1}`)
	core.put("us/b", `{"n":2}`)
	conf := file(t, "gateway.yaml", `
sources:
  core: { type: grpc, address: "`+core.grpc+`" }
watches:
  notes: { source: core }
  europe: { source: core, watch: notes, prefix: "eu/", prime: false, linger: 1s }
`)
	edge := serve(t, "--config", conf)
	all := start(t, "watch", "notes", "--server", edge.url(), "--wait-for", "count == 3")
	some := start(t, "watch", "europe", "--server", edge.url(), "--wait-for", `count == 2 && "eu/c" in resources`)
	core.put("eu/c", `{"n":3}`)
	for _, w := range []*running{all, some} {
		if code := w.awaitCode(); code != 0 {
			t.Errorf("exit code %d: %s", code, w.logs)
		}
	}
}

// behind serves a gateway that follows notes of another one, through a proxy.
func behind(t *testing.T, p *proxy) *served {
	t.Helper()
	return serve(t, "--config", file(t, "edge.yaml", `
sources: { core: { type: grpc, address: "`+p.listener.Addr().String()+`" } }
watches: { notes: { source: core } }
`))
}

// An upstream that is down is retried until it is up.
func TestServeKeepsTrying(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	core := serve(t, "--config", file(t, "core.yaml", quick))
	core.put("a", "1")
	p := newProxy(t, core.grpc)
	p.cut("")
	edge := behind(t, p)
	edge.logs.await(t, "upstream lost")
	if status, _ := edge.do("GET", "/readyz", ""); status != 503 {
		t.Errorf("/readyz: %d, want 503", status)
	}
	p.cut(core.grpc)
	w := start(t, "watch", "notes", "--server", edge.url(), "--wait-for", "count == 1")
	if code := w.awaitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, w.logs)
	}
	if status, body := edge.do("GET", "/readyz", ""); status != 200 {
		t.Errorf("/readyz: %d %s", status, body)
	}
}

// When the gateway behind its gateway is lost, a subscriber gets the changes if
// the upstream is the same, and what differs if it has started over.
func TestWhatALeafSeesOfALostUpstream(t *testing.T) {
	core, restarted := serve(t, "--config", file(t, "core.yaml", quick)), serve(t, "--config", file(t, "core.yaml", quick))
	core.put("a", "1")
	core.put("b", "2")
	p := newProxy(t, core.grpc)
	leaf := start(t, "watch", "notes", "--server", behind(t, p).url())
	for line := ""; !strings.Contains(line, "end_of_snapshot"); {
		line = leaf.line()
	}
	p.cut("")
	core.put("c", "3")
	core.remove("a")
	p.cut(core.grpc)
	leaf.expectOf("upsert", "delete", "reset")(
		`{"type":"upsert","watch":"notes","key":"c","revision":"3","value":3}`,
		`{"type":"delete","watch":"notes","key":"a","revision":"4"}`)

	restarted.put("d", "4")
	p.cut(restarted.grpc)
	leaf.expectOf("upsert", "delete", "reset", "end_of_snapshot")(
		`{"type":"delete","watch":"notes","key":"b","revision":"1"}`,
		`{"type":"delete","watch":"notes","key":"c","revision":"1"}`,
		`{"type":"upsert","watch":"notes","key":"d","revision":"1","value":4}`,
		`{"type":"end_of_snapshot","watch":"notes","revision":"1","count":1,"resumed":true,"verify":true}`)
}

func mustLoad(t *testing.T, file string) *config.Config {
	t.Helper()
	c, err := config.Load(file, config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServeOverTLS(t *testing.T) {
	cert, key, client := certificate(t)
	conf := file(t, "core.yaml", `
http: { tls: { cert_file: "`+cert+`", key_file: "`+key+`" } }
grpc: { tls: { cert_file: "`+cert+`", key_file: "`+key+`" } }
sources: { local: { type: store } }
watches: { notes: { source: local } }
`)
	core := serve(t, "--config", conf)
	if hosts := hostsOf(mustLoad(t, conf)); !slices.Equal(hosts, []string{"gateway.test"}) {
		t.Errorf("hosts %q, want that of the certificate once", hosts)
	}
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if status, body := fetch(t, transport, "PUT", "https://"+core.http+"/v1/watches/notes/resources/a", "1"); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	edge := serve(t, "--config", file(t, "edge.yaml", `
sources: { core: { type: grpc, address: "`+core.grpc+`", tls: { ca_file: "`+cert+`", server_name: gateway.test } } }
watches: { notes: { source: core } }
`))
	w := start(t, "watch", "notes", "--server", edge.url(), "--wait-for", "count == 1")
	if code := w.awaitCode(); code != 0 {
		t.Errorf("exit code %d: %s\n%s", code, w.logs, edge.logs)
	}
}

func TestServeLogsAsTextOnATerminal(t *testing.T) {
	logs, signals := newLines(), make(chan os.Signal, 1)
	p := process{stdout: newLines(), stderr: logs, logTerminal: true, signals: signals, exit: func(int) {}}
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), p, []string{"serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--operations", "127.0.0.1:0", "--log-level", "error"})
	}()
	text := logs.await(t, "Dashboard: http://127.0.0.1:")
	signals <- os.Interrupt
	if got := <-code; got != 0 || strings.Count(text, "\n") != 2 || !strings.Contains(text, "msg=listening http=127.0.0.1:") {
		t.Errorf("exit code %d, want 0; want only the two lines that are always there:\n%s", got, text)
	}
}

// TestServeNamesTheDashboard: the last line of a start is an address that a browser can open, and
// the log of a program that reads JSON has nothing else.
func TestServeNamesTheDashboard(t *testing.T) {
	start := func(format string) (text string) {
		g := start(t, "serve", "--config", file(t, "gateway.yaml", quick), "--http", "0.0.0.0:0", "--auth", "none", "--operations", "off", "--log-format", format)
		g.logs.await(t, "listening")
		g.signals <- os.Interrupt
		g.awaitCode()
		return g.logs.String()
	}
	m := regexp.MustCompile(`msg=listening http=\S+:(\d+) .*\nDashboard: (.*)\n`).FindStringSubmatch(start("text"))
	if m == nil || m[2] != "http://127.0.0.1:"+m[1]+"/" {
		t.Errorf("%q: want the address of the dashboard right after that of the listener", m)
	}
	for line := range strings.Lines(start("json")) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestDashboardAt(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80/", "0.0.0.0:80": "http://127.0.0.1:80/", "[::]:80": "http://127.0.0.1:80/",
		"[::1]:80": "http://[::1]:80/", "192.0.2.7:80": "http://192.0.2.7:80/",
	} {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
		if got := dashboardAt(at, false); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := dashboardAt(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}, true); got != "https://127.0.0.1:443/" {
		t.Errorf("with TLS: %s", got)
	}
}

// asProcess runs the command in a process of its own.
func asProcess(t *testing.T, args ...string) (*exec.Cmd, *lines) {
	t.Helper()
	logs := newLines()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	c.Stderr = logs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c, logs
}

func TestServeEndsWithTheSecondSignal(t *testing.T) {
	conf := file(t, "gateway.yaml", "stream: { drain: 1h }\nsources: { s: { type: store } }\nwatches: { notes: { source: s } }")
	c, logs := asProcess(t, "serve", "--config", conf, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	text := logs.await(t, `"msg":"listening"`)
	_, after, _ := strings.Cut(text, `"http":"`)
	address, _, _ := strings.Cut(after, `"`)
	w := start(t, "watch", "notes", "--server", "http://"+address)
	w.line() // hello: now there is a stream to be drained

	began := time.Now()
	_ = c.Process.Signal(syscall.SIGTERM)
	logs.await(t, "draining")
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 143 || time.Since(began) > patience {
		t.Errorf("exit code %d after %v, want 143 at once", code, time.Since(began))
	}
}

func TestServeAsAProcessEndsWithZero(t *testing.T) {
	c, logs := asProcess(t, "serve", "--config", file(t, "gateway.yaml", quick), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	logs.await(t, `"msg":"listening"`)
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Errorf("%v; stderr:\n%s", err, logs)
	}
}

func TestServeEndsWithoutDelayWhenInterrupted(t *testing.T) {
	conf := file(t, "gateway.yaml", "stream: { drain_delay: 1h }\nsources: { s: { type: store } }\nwatches: { notes: { source: s } }")
	g := serve(t, "--config", conf)
	g.signals <- os.Interrupt
	if code := g.awaitCode(); code != 0 {
		t.Errorf("exit code %d, want 0; stderr:\n%s", code, g.logs)
	}
}

// The format of the log can be chosen, whatever standard error is.
func TestServeLogsInTheChosenFormat(t *testing.T) {
	for format, want := range map[string]string{"text": "level=INFO msg=listening http=127.0.0.1:", "json": `"level":"INFO","msg":"listening","http":"127.0.0.1:`} {
		g := start(t, "serve", "--config", file(t, "gateway.yaml", quick), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--operations", "127.0.0.1:0", "--log-format", format)
		g.logs.await(t, want)
		g.signals <- os.Interrupt
		if code := g.awaitCode(); code != 0 {
			t.Errorf("%s: exit code %d: %s", format, code, g.logs)
		}
	}
}
