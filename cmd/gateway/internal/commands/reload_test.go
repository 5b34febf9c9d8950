package commands

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// rewrite gives a file another content, as an editor does.
func rewrite(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// reloaded gives the configuration another content, and waits until it is in effect.
func (s *served) reloaded(conf, content string) {
	s.t.Helper()
	const done = `"msg":"configuration reloaded"`
	before := strings.Count(s.logs.String(), done)
	rewrite(s.t, conf, content)
	s.logs.awaitTimes(s.t, done, before+1)
}

// follow opens a stream, and returns its lines as they arrive. The channel is closed at its
// end.
func (s *served) follow(path string) <-chan string {
	s.t.Helper()
	transport := &http.Transport{}
	response, err := (&http.Client{Transport: transport}).Get(s.url() + path)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: status %d", path, response.StatusCode)
	}
	lines, ended := make(chan string), make(chan struct{})
	stop := s.t.Context().Done()
	go func() {
		defer close(ended)
		defer close(lines)
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-stop:
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		response.Body.Close()
		<-ended
		transport.CloseIdleConnections()
	})
	return lines
}

// awaitLine returns the next line that contains a text.
func awaitLine(t *testing.T, lines <-chan string, want string) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, open := <-lines:
			if !open {
				t.Fatalf("the stream has ended without %q", want)
			}
			if strings.Contains(line, want) {
				return line
			}
		case <-timeout:
			t.Fatalf("no %q", want)
		}
	}
}

// Each watch meets a reload in its own way: one is kept, with its streams; one is replaced,
// and keeps what its store has; one goes, and one comes.
func TestReload(t *testing.T) {
	conf := file(t, "gateway.yaml", `
sources: { local: { type: store } }
watches: { notes: { source: local }, replaced: { source: local }, removed: { source: local } }
`)
	g := serve(t, "--config", conf)
	g.put("a", "1")
	if status, body := g.do("PUT", "/v1/watches/replaced/resources/b", "2"); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	kept, replaced, removed := g.follow("/v1/watches/notes/events"), g.follow("/v1/watches/replaced/events"), g.follow("/v1/watches/removed/events")
	for _, lines := range []<-chan string{kept, replaced, removed} {
		awaitLine(t, lines, "end_of_snapshot")
	}
	g.reloaded(conf, `
stream: { heartbeat: 7s, max_subscribers: 5 }
sources: { local: { type: store, max_value_bytes: 10 } }
watches: { notes: { source: local }, replaced: { source: local, required: true }, added: { source: local } }
`)
	awaitLine(t, replaced, `"reason":"watch_replaced"`)
	awaitLine(t, removed, `"reason":"watch_removed"`)
	g.put("c", "3")
	awaitLine(t, kept, `"key":"c"`)
	if status, body := g.do("GET", "/v1/watches/replaced/resources/b", ""); status != 200 || !strings.Contains(body, `"value":2`) {
		t.Errorf("the replaced watch: %d %s", status, body)
	}
	if status, _ := g.do("GET", "/v1/watches/removed/events", ""); status != 404 {
		t.Errorf("the removed watch: status %d, want 404", status)
	}
	if status, body := g.do("PUT", "/v1/watches/added/resources/d", "4"); status != 201 {
		t.Errorf("the new watch: %d %s", status, body)
	}
	if status, _ := g.do("PUT", "/v1/watches/notes/resources/d", `"more than ten bytes"`); status != 413 {
		t.Errorf("a value of more bytes than the store takes now: status %d, want 413", status)
	}
	awaitLine(t, g.follow("/v1/watches/notes/events"), `"heartbeat_ms":7000`)
	if !strings.Contains(g.logs.String(), `"kept":1,"replaced":1,"added":1,"removed":1`) {
		t.Errorf("the log does not say what was done:\n%s", g.logs)
	}
	_, metrics := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/metrics", "")
	if strings.Contains(metrics, `"removed"`) || !strings.Contains(metrics, `watchtide_config_reloads_total{result="success"} 1`) {
		t.Error("the metrics have the removed watch, or not the reload")
	}
}

// A mistake keeps everything as it is, and is reported with its place until it is corrected.
func TestReloadOfAMistake(t *testing.T) {
	const right = "sources:\n  local: { type: store }\nwatches:\n  notes: { source: local }\n"
	conf := file(t, "gateway.yaml", right)
	g := serve(t, "--config", conf)
	g.put("a", "1")
	lines := g.follow("/v1/watches/notes/events")
	awaitLine(t, lines, "end_of_snapshot")
	rewrite(t, conf, "stream: { heartbeat: soon }\n"+right+"  other: { source: locla }\n")
	g.logs.await(t, conf+`:1:22: stream.heartbeat`)
	_, ready := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/readyz", "")
	if !strings.HasPrefix(ready, "ready\n") || !strings.Contains(ready, conf+":1:22: ") {
		t.Errorf("/readyz: %s", ready)
	}
	_, metrics := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/metrics", "")
	for _, want := range []string{`watchtide_config_reloads_total{result="failure"} 1`, "watchtide_config_last_reload_successful 0"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	g.put("b", "2")
	awaitLine(t, lines, `"key":"b"`)
	g.reloaded(conf, right)
	if _, ready := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+"/readyz", ""); ready != "ready\n" {
		t.Errorf("/readyz: %s", ready)
	}
	g.put("c", "3")
	awaitLine(t, lines, `"key":"c"`)
}

// A view is replaced with the watch of which it is a part, and so is a view of the view; a
// view of another watch is not. A template and its watches stay, unless it changes.
func TestReloadOfViewsAndTemplates(t *testing.T) {
	const before = `
sources: { local: { type: store } }
watches:
  notes: { source: local }
  other: { source: local }
  some: { view_of: notes, filter: "value > 1" }
  few: { view_of: some, filter: "value > 2" }
  part: { view_of: other, prefix: a }
  "t-{n}": { source: local, params: { n: "[a-z]" } }
  "v-{n}": { view_of: notes, params: { n: "[a-z]" }, prefix: "{n}/" }
`
	conf := file(t, "gateway.yaml", before)
	g := serve(t, "--config", conf)
	streams := map[string]<-chan string{}
	for _, name := range []string{"some", "few", "part", "t-x", "v-x"} {
		streams[name] = g.follow("/v1/watches/" + name + "/events")
		awaitLine(t, streams[name], "end_of_snapshot")
	}
	narrowed := g.follow("/v1/watches/notes/events?filter=value%3E1")
	awaitLine(t, narrowed, "end_of_snapshot")
	g.reloaded(conf, strings.Replace(before, "notes: { source: local }", "notes: { source: local, linger: 1m }", 1))
	for _, name := range []string{"some", "few", "v-x"} {
		awaitLine(t, streams[name], `"reason":"watch_replaced"`)
	}
	awaitLine(t, narrowed, `"reason":"watch_replaced"`)
	for _, name := range []string{"other", "t-x"} {
		if status, body := g.do("PUT", "/v1/watches/"+name+"/resources/a", "3"); status != 201 {
			t.Fatalf("%d %s", status, body)
		}
	}
	awaitLine(t, streams["part"], `"key":"a"`)
	awaitLine(t, streams["t-x"], `"key":"a"`)
	again := g.follow("/v1/watches/few/events")
	awaitLine(t, again, "end_of_snapshot")
	g.put("b", "3")
	awaitLine(t, again, `"key":"b"`)
}

// What takes a restart is reported, and the rest is put into effect.
func TestReloadOfListeners(t *testing.T) {
	const rest = "sources: { local: { type: store } }\nwatches: { notes: { source: local } }\n"
	conf := file(t, "gateway.yaml", rest)
	r := start(t, "serve", "--config", conf, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
	r.logs.await(t, `"listening"`)
	rewrite(t, conf, "operations: { listen: \"127.0.0.1:1\" }\nstream: { pump: goroutines }\n"+rest)
	r.logs.await(t, `"msg":"a restart is needed for this to take effect","key":"stream.pump"`)
	if logs := r.logs.String(); !strings.Contains(logs, `"key":"operations.listen","in_effect":"127.0.0.1:8081","configured":"127.0.0.1:1"`) {
		t.Errorf("no warning of the listener:\n%s", logs)
	}
}

// The files of a ConfigMap change all at once, by a link.
func TestReloadAfterASwapOfLinks(t *testing.T) {
	dir := t.TempDir()
	volume := func(name, watches string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "sources: { local: { type: store } }\nwatches: { " + watches + " }\n"
		if err := os.WriteFile(filepath.Join(dir, name, "gateway.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink(name, filepath.Join(dir, "..data_tmp"))
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	volume("..1", "notes: { source: local }")
	conf := filepath.Join(dir, "gateway.yaml")
	if err := os.Symlink(filepath.Join("..data", "gateway.yaml"), conf); err != nil {
		t.Fatal(err)
	}
	g := serve(t, "--config", conf)
	for i := range 3 {
		volume(fmt.Sprint("..", i+2), fmt.Sprintf("notes: { source: local }, n%d: { source: local }", i))
		g.logs.awaitTimes(t, `"msg":"configuration reloaded"`, i+1)
		if status, _ := g.do("GET", fmt.Sprintf("/v1/watches/n%d", i), ""); status != 200 {
			t.Errorf("n%d: status %d, want 200", i, status)
		}
	}
}

// A watch that is added does not interrupt those that follow the same gateway.
func TestReloadKeepsConnectionsToAnotherGateway(t *testing.T) {
	core := serve(t, "--config", file(t, "core.yaml", "sources: { s: { type: store } }\nwatches: { notes: { source: s }, more: { source: s } }"))
	core.awaitPrimed()
	const edgeConfig = `
sources: { core: { type: gateway, url: %q } }
watches: { notes: { source: core }%s }
`
	conf := file(t, "edge.yaml", fmt.Sprintf(edgeConfig, core.url(), ""))
	edge := serve(t, "--config", conf)
	edge.awaitPrimed()
	followers := func() string {
		_, body := fetch(t, http.DefaultTransport, "GET", "http://"+core.operations+"/v1/subscribers?watch=notes", "")
		return body[strings.Index(body, `"subscribers":`):strings.Index(body, `"since"`)]
	}
	before := followers()
	edge.reloaded(conf, fmt.Sprintf(edgeConfig, core.url(), ", more: { source: core }"))
	if status, body := edge.do("GET", "/v1/watches/more/resources", ""); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if after := followers(); after != before {
		t.Errorf("the core is followed by %s, before by %s", after, before)
	}
	edge.reloaded(conf, fmt.Sprintf(edgeConfig, core.url(), ""))
	if after := followers(); after != before {
		t.Errorf("after the second reload the core is followed by %s, before by %s", after, before)
	}
}

// SIGHUP reloads, however often it comes, and never ends the process.
func TestHangupReloads(t *testing.T) {
	conf := file(t, "gateway.yaml", quick)
	c, logs := asProcess(t, "serve", "--config", conf, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	logs.await(t, `"msg":"listening"`)
	hangUp := func() {
		t.Helper()
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	for times := range 2 {
		hangUp()
		logs.awaitTimes(t, `"msg":"configuration reloaded"`, times+1)
	}
	for range 100 {
		hangUp()
	}
	logs.awaitTimes(t, `"msg":"configuration reloaded"`, 3)
	_ = c.Process.Signal(syscall.SIGTERM)
	hangUp() // while it drains
	if err := c.Wait(); err != nil {
		t.Errorf("%v; stderr:\n%s", err, logs)
	}
}

// A SIGHUP that comes while the configuration is read for the first time is not lost. A pipe
// cannot be read a second time.
func TestHangupDuringStart(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c, logs := asProcess(t, "serve", "--config", pipe, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(writer, quick); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	logs.await(t, `"msg":"listening"`)
	logs.await(t, "it is no regular file, and can only be read at start")
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Errorf("%v; stderr:\n%s", err, logs)
	}
}

func TestHangupWithoutConfiguration(t *testing.T) {
	c, logs := asProcess(t, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	logs.await(t, `"msg":"listening"`)
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	logs.await(t, "there is nothing to reload")
	_ = c.Process.Signal(syscall.SIGINT)
	if err := c.Wait(); err != nil {
		t.Errorf("%v; stderr:\n%s", err, logs)
	}
}

// newSite returns a site without listeners, on which configurations can be put into effect.
func newSite(t *testing.T, c *config.Config) *daemon {
	t.Helper()
	s := &daemon{
		logger: slog.New(slog.DiscardHandler), registry: watch.NewRegistry(), views: views.NewDeclared(), secured: newSecured(c), started: c,
	}
	s.upstreams = newUpstreams(s.logger, nil, s.views, nil)
	t.Cleanup(s.views.Close)
	t.Cleanup(s.registry.Close)
	if err := s.begin(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestManyReloads: a thousand reloads leave nothing behind.
func TestManyReloads(t *testing.T) {
	parse := func(i int) *config.Config {
		t.Helper()
		text := fmt.Sprintf(`
stream: { heartbeat: %ds }
sources: { local: { type: store }, dir: { type: files, dir: %q }, s%d: { type: store } }
watches:
  notes: { source: local }
  changes: { source: local, linger: %ds }
  w%d: { source: s%d }
  files: { source: dir, linger: %ds, prime: false }
  part: { view_of: changes, prefix: a }
  "t-{n}": { source: local, linger: %ds, params: { n: "[0-9]+" } }
`, 1+i, t.TempDir(), i, 1+i, i, i, 1+i, 1+i)
		c, err := config.Parse("gateway.yaml", []byte(text), config.Environment{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := newSite(t, parse(0))
	kept, _ := s.registry.Watch("notes")
	reload := func(from, to int) (goroutines int, heap uint64) {
		for i := from; i < to; i++ {
			if _, err := s.apply(parse(i)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.registry.Open(fmt.Sprint("t-", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.apply(parse(to)); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return runtime.NumGoroutine(), m.HeapAlloc
	}
	n := 1000
	if testing.Short() {
		n = 200
	}
	goroutines, heap := reload(1, 100)
	after, grown := reload(101, 101+n)
	if after > goroutines+2 || int64(grown)-int64(heap) > 1<<20 {
		t.Errorf("after %d more reloads there are %d goroutines, before %d, and %d bytes more", n, after, goroutines, int64(grown)-int64(heap))
	}
	if now, _ := s.registry.Watch("notes"); now != kept {
		t.Error("a watch that never changed was replaced")
	}
	if n := len(s.upstreams.stores.all); n != 2 {
		t.Errorf("%d stores are left, want 2", n)
	}
}

// A configuration that cannot be put into effect changes nothing, and leaves nothing behind.
func TestReloadThatFails(t *testing.T) {
	parse := func(text string) *config.Config {
		t.Helper()
		c, err := config.Parse("gateway.yaml", []byte(text), config.Environment{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := newSite(t, parse("sources: { local: { type: store } }\nwatches: { notes: { source: local } }"))
	notes, _ := s.registry.Watch("notes")
	before := s.current
	broken := parse("sources: { local: { type: store }, more: { type: store } }\nwatches: { a: { source: more }, b: { source: more } }")
	broken.Watches[1].Source = "gone"
	if _, err := s.apply(broken); err == nil || !strings.Contains(err.Error(), "watch b") {
		t.Errorf("got %v, want an error that names the watch", err)
	}
	now, _ := s.registry.Watch("notes")
	if _, added := s.registry.Watch("a"); added || now != notes || s.current != before || len(s.upstreams.stores.all) != 1 {
		t.Error("the broken configuration had an effect")
	}
}
