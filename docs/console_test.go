//go:build servers

package docs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
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

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// patience is how long a command may take. Only a failing one takes that long.
const patience = time.Minute

// elsewhere are the commands that this file does not run, by how they begin, each with the
// reason.
var elsewhere = map[string]string{
	"docs/command-line.md: ":                                      "run by TestCommandLineExamples",
	"docs/following-changes.md: watchtide watch backends":         "run by TestTheScriptOfTheGuide",
	"README.md: make ":                                            "checked by TestCommandsOfTheRepositoryExist",
	"docs/README.md: git clone":                                   "what the tests are in",
	"docs/README.md: cd ":                                         "what the tests are in",
	"docs/README.md: make ":                                       "checked by TestCommandsOfTheRepositoryExist",
	"docs/README.md: mkdir ":                                      "newReader makes the folder of resources",
	"docs/README.md: python3 ":                                    "the page is run by the tests of the examples",
	"docs/README.md: echo ":                                       "newReader writes the file",
	"docs/README.md: export PATH=":                                "what newReader does for every command",
	"README.md: export PATH=":                                     "what newReader does for every command",
	"docs/access.md: curl ":                                       "needs a public address; run by the tests of sessions and of tickets in gateway",
	"docs/access.md: etcdctl ":                                    "needs etcd and its client; TestRevocationsSurviveARestart in gateway revokes so",
	"docs/access.md: TOKEN=$(kubectl create token":                "needs a cluster; TestKubernetesForEachUser in cmd/gateway/internal/commands sends such tokens",
	"docs/installing.md: ":                                        "changes the machine, or needs Docker or a cluster; the manifests are tested in deploy and release",
	"docs/doctor.md: watchtide doctor":                            "needs a public address; run by the tests of the doctor",
	"docs/configuration.md: watchtide init":                       "run by the tests of init with the real servers",
	"docs/tracing.md: OTEL_EXPORTER_OTLP_ENDPOINT=":               "needs a collector; run by the tests of traces",
	"docs/tracing.md: curl -s -H 'Accept: application/openmetric": "needs a collector; run by the tests of traces",
	"docs/tracing.md: go tool pprof":                              "interactive; the profile is read by the tests of the operations listener",
	"docs/tracing.md: curl -o":                                    "interactive; the trace is read by the tests of the operations listener",
}

// harmless are the commands that leave the machine as it is.
var harmless = regexp.MustCompile(`^(curl|(bin/)?watchtide) `)

// console is a command of a document, and what it prints.
type console struct{ page, command, output string }

func (c console) String() string { return c.page + ": " + c.command }

// consoles returns the commands of all documents, in the order in which a reader meets them.
func consoles(t *testing.T) (out []console) {
	t.Helper()
	all := pages(t)
	for name, text := range all {
		if strings.HasPrefix(name, "../examples/") {
			continue // these are run by the tests of the examples
		}
		page := "docs/" + name
		if name == "../README.md" {
			page = "README.md"
		}
		for _, block := range blocks(text, "console") {
			for line := range strings.Lines(block) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					out = append(out, console{page: page, command: strings.TrimSpace(command)})
				} else if len(out) > 0 {
					out[len(out)-1].output += line
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b console) int { return strings.Compare(a.page, b.page) })
	return out
}

// TestConsole runs the commands of the documents, those of a page one after the other with one
// gateway. What they print must have every line that the page shows, in that order, except for
// what differs each time: epochs, times, names of instances.
func TestConsole(t *testing.T) {
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: the commands of the documents are not tested", program)
		}
	}
	path := filepath.Join(t.TempDir(), "bin")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", filepath.Join(path, "watchtide"), "../cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run, excused := 0, map[string]bool{}
	var at *reader
	for _, c := range consoles(t) {
		if reason := excuse(c); reason != "" {
			excused[reason] = true
			continue
		}
		if !harmless.MatchString(c.command) {
			t.Errorf("%s: this is not run, since it is neither curl nor watchtide: say in elsewhere what tests it", c)
			continue
		}
		if at == nil || at.page != c.page {
			at = newReader(t, path, c.page)
		}
		at.run(c)
		run++
	}
	if run < 30 {
		t.Errorf("ran %d commands only", run)
	}
	for begins := range elsewhere {
		if !excused[begins] {
			t.Errorf("no command of the documents begins with %q any more", begins)
		}
	}
}

// excuse returns what names a command in elsewhere.
func excuse(c console) string {
	for begins := range elsewhere {
		if strings.HasPrefix(c.String(), begins) {
			return begins
		}
	}
	return ""
}

// reader does what a page says, with a gateway and a folder of its own.
type reader struct {
	t                  *testing.T
	page, dir, path    string
	public, operations string // addresses of the gateway
	etcd               string
}

func newReader(t *testing.T, path, page string) *reader {
	t.Helper()
	r := &reader{t: t, page: page, dir: t.TempDir(), path: path, public: realserver.FreeAddress(t), operations: realserver.FreeAddress(t)}
	r.files()
	config := `
sources: { local: { type: store }, machine: { type: host, interval: 100ms }, disk: { type: files, dir: ./resources } }
watches: { notes: { source: local }, processes: { source: machine, collection: processes }, pages: { source: disk } }
stream: { heartbeat: 1s }
`
	if page == "README.md" {
		r.startEtcd()
		config = strings.Replace(config, "watches: {", `watches: { services: { source: cluster, prefix: "services/" },`, 1)
		config = strings.Replace(config, "sources: {", `sources: { cluster: { type: etcd, endpoints: ["`+r.etcd+`"] },`, 1)
	}
	r.write("test.yaml", config)
	realserver.Command{Path: filepath.Join(path, "watchtide"), Dir: r.dir, Address: r.public,
		Args: []string{"serve", "--config", "test.yaml", "--http", r.public, "--operations", r.operations, "--grpc", "127.0.0.1:0"}}.Start(t)
	for deadline := time.Now().Add(patience); ; {
		if status, _ := r.do("GET", "http://"+r.public+"/readyz", ""); status == http.StatusOK {
			return r
		} else if time.Now().After(deadline) {
			t.Fatal("the gateway is not ready")
		}
	}
}

// files writes the files that the page names.
func (r *reader) files() {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", r.page))
	if err != nil {
		r.t.Fatal(err)
	}
	if configurations := blocks(string(text), "yaml"); len(configurations) > 0 {
		first := configurations[0]
		for _, c := range configurations {
			name, _, _ := strings.Cut(c, "\n")
			if file, ok := strings.CutPrefix(name, "# "); ok && strings.HasSuffix(file, ".yaml") {
				r.write(file, c)
			}
		}
		if _, err := os.Stat(filepath.Join(r.dir, "gateway.yaml")); err != nil {
			r.write("gateway.yaml", first)
		}
	} else {
		r.write("gateway.yaml", "sources: { local: { type: store } }\nwatches: { notes: { source: local } }\n")
	}
	r.write("bad.yaml", "stream:\n  heartbeet: 1s\nwatches:\n  notes: { source: lokal }\nsources:\n  local: { type: store, max_bytes: \"5MB\" }\n")
	r.write("rules.yaml", `
sources: { local: { type: store } }
watches: { orders: { source: local, allow: [{ role: staff, read: "value.owner == principal.name" }] } }
roles: { staff: { when: '"staff" in principal.groups' } }
auth: { tokens_file: tokens }
`)
	r.write("tokens", "# none yet\n")
	if r.page == "docs/sources/files.md" {
		r.write("resources/blog/first.yaml", "a: 1\nb: c: 3\n")
	} else {
		r.write("resources/first.yaml", "title: Hello\n")
	}
	r.write("reload.sh", "#!/bin/sh\necho reloaded\n")
	r.write("token", "secret\n")
	for _, name := range []string{"ann.json", "claims.json"} {
		r.write(name, `{"name":"ann","mechanism":"token","groups":["staff"]}`)
	}
	r.write("order.json", `{"owner":"ann"}`)
	if err := os.Symlink(r.path, filepath.Join(r.dir, "bin")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		r.t.Fatal(err)
	}
}

// given are the writes that come before a command, in the words of the page: KEY VALUE, or KEY
// alone for a delete.
var given = map[string][]string{
	"README.md: curl -N http://127.0.0.1:8080/v1/watches/services":                   {`web {"state":"ready","node":"a"}`, `shop {"state":"ready","node":"b"}`},
	"docs/protocol.md: curl -N 'http://127.0.0.1:8080/v1/watches/notes/events?until": {`shopping/milk {"text":"two litres"}`},
	"docs/protocol.md: curl -N -H 'Last-Event-ID":                                    {"k2 2", "k3 3", "k4 4", "k1 5", "k1 6", "k2", "k5 5"},
	"docs/following-changes.md: watchtide watch notes --changes-only":                {"a 1", "b 1"},
}

// during are the writes that are made once a command follows the watch.
var during = map[string][]string{
	"README.md: curl -N http://127.0.0.1:8080/v1/watches/services":           {`web {"state":"draining","node":"a"}`},
	"docs/following-changes.md: watchtide watch notes --changes-only":        {"a 2", "b"},
	"docs/following-changes.md: watchtide watch notes --exec":                {"a 3", "b 1", "b"},
	"README.md: watchtide watch notes --exec":                                {"a 3"},
	"docs/protocol.md: curl 'http://127.0.0.1:8080/v1/watches/notes/changes": {"k6 6"},
}

func writesOf(table map[string][]string, c console) []string {
	for begins, writes := range table {
		if strings.HasPrefix(c.String(), begins) {
			return writes
		}
	}
	return nil
}

// run runs a command until it has printed what the page shows, or, if that is nothing, until it
// ends or prints anything.
func (r *reader) run(c console) {
	r.t.Helper()
	for _, w := range writesOf(given, c) {
		r.put(c, w)
	}
	want := shown(c.output)
	if c.page == "docs/logs.md" {
		want = want[:1] // in the others an upstream is lost
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", r.adapted(c.command))
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "WATCHTIDE_SERVER=http://"+r.public, "HOME="+r.dir, "XDG_STATE_HOME="+r.dir, "PATH="+r.path+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	read, written := io.Pipe()
	cmd.Stdout, cmd.Stderr = written, written
	r.awaitSubscribers(ctx, 0)
	if strings.Contains(c.command, "/v1/subscribers") {
		stream, err := client.Get("http://" + r.public + "/v1/watches/notes/events")
		if err != nil {
			r.t.Fatal(err)
		}
		defer stream.Body.Close()
		r.awaitSubscribers(ctx, 1)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		cmd.Wait()
		written.Close()
	})
	if writes := writesOf(during, c); writes != nil {
		r.awaitSubscribers(ctx, 1)
		for _, w := range writes {
			r.put(c, w)
		}
	}
	var printed []string
	next := 0
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		printed = append(printed, lines.Text())
		if next < len(want) && matchesLine(want[next], lines.Text()) {
			next++
		}
		if next == len(want) {
			break
		}
	}
	failed := len(want) == 0 && len(printed) == 0 && ctx.Err() != nil
	cancel()
	io.Copy(io.Discard, read)
	ended.Wait()
	if failed || next < len(want) || slices.ContainsFunc(printed, isMistake) && len(want) == 0 {
		missing := "anything"
		if next < len(want) {
			missing = want[next]
		}
		r.t.Errorf("%s\nprinted\n%s\nbut not\n%s", c, strings.Join(printed[max(0, len(printed)-20):], "\n"), missing)
	}
}

// isMistake recognises the error messages of the shell and of the program.
func isMistake(line string) bool {
	return strings.HasPrefix(line, "watchtide: ") || strings.HasPrefix(line, "sh: ") || strings.HasPrefix(line, "curl: ")
}

var position = regexp.MustCompile(`notes@[0-9a-f]{12}-`)

// adapted returns a command with the addresses of this gateway instead of the usual ones, and
// positions of its epoch.
func (r *reader) adapted(command string) string {
	command = strings.NewReplacer("curl ", "curl -sS ", "127.0.0.1:8080/v1/subscribers", r.operations+"/v1/subscribers", "127.0.0.1:8080", r.public, "127.0.0.1:8081", r.operations).Replace(command)
	if strings.Contains(command, "config can") {
		command = strings.Replace(command, "gateway.yaml", "rules.yaml", 1)
	}
	if strings.Contains(command, "watch=processes") {
		command = "sleep 1 & " + command // a process that ends meanwhile
	}
	if strings.Contains(command, "watchtide serve") {
		flags := " --http 127.0.0.1:0 --operations 127.0.0.1:0 --grpc 127.0.0.1:0"
		command = strings.Replace(command, "watchtide serve", "watchtide serve"+flags, 1)
	}
	_, answer := r.do("GET", "http://"+r.public+"/v1/watches/notes", "")
	var watch struct{ Epoch string }
	if err := json.Unmarshal([]byte(answer), &watch); err != nil || watch.Epoch == "" {
		r.t.Fatalf("no epoch in %s: %v", answer, err)
	}
	return position.ReplaceAllString(command, "notes@"+watch.Epoch+"-")
}

// shown returns the lines of an output that a page promises.
func shown(output string) (out []string) {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && line != "…" {
			out = append(out, line)
		}
	}
	return out
}

// varying is what differs each time.
var varying = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`@[0-9A-Za-z]{8,24}-`), "@E-"},
	{regexp.MustCompile(`^retry: \d+$`), "retry: N"},
	{regexp.MustCompile(`"(retry_ms|heartbeat_ms|bytes)":\d+`), `"$1":0`},
	{regexp.MustCompile(`"instance":"\w+"`), `"instance":"I"`},
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`), `"T"`},
}

// matchesLine reports whether a printed line is what a page shows. Where the page has …, there
// may be anything. Events of this machine's processes, and the list of subscribers, have the
// same members, whatever is in them.
func matchesLine(want, got string) bool {
	for _, v := range varying {
		want, got = v.pattern.ReplaceAllString(want, v.replacement), v.pattern.ReplaceAllString(got, v.replacement)
	}
	if strings.Contains(want, "…") {
		parts := strings.Split(want, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
		}
		return regexp.MustCompile(strings.Join(parts, ".*")).MatchString(got)
	}
	for _, of := range []string{`"watch":"processes"`, `"subscribers":[`, `"level":"INFO"`} {
		if strings.Contains(want, of) {
			want, _, _ = strings.Cut(want, `"left":`)
			got, _, _ = strings.Cut(got, `"left":`)
			return strings.Contains(got, of) && slices.Equal(members(want), members(got))
		}
	}
	if strings.HasPrefix(want, "id: processes@") {
		return strings.HasPrefix(got, "id: processes@")
	}
	return strings.TrimSpace(got) == want
}

var member = regexp.MustCompile(`"(\w+)":`)

func members(line string) (names []string) {
	for _, m := range member.FindAllStringSubmatch(line, -1) {
		names = append(names, m[1])
	}
	return names
}

// awaitSubscribers waits until the gateway has that many streams.
func (r *reader) awaitSubscribers(ctx context.Context, want int) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		_, answer := r.do("GET", "http://"+r.operations+"/v1/subscribers?limit=1", "")
		var list struct{ Count int }
		if err := json.Unmarshal([]byte(answer), &list); err != nil {
			r.t.Fatalf("%v: %s", err, answer)
		}
		if list.Count == want {
			return
		}
	}
	r.t.Fatalf("the gateway has not had %d streams", want)
}

// put makes a write to the watch that the command follows.
func (r *reader) put(c console, write string) {
	r.t.Helper()
	key, value, set := strings.Cut(write, " ")
	if strings.Contains(c.command, "/services/") {
		r.putEtcd("services/"+key, value)
		return
	}
	method := http.MethodPut
	if !set {
		method = http.MethodDelete
	}
	if status, answer := r.do(method, "http://"+r.public+"/v1/watches/notes/resources/"+key, value); status/100 != 2 {
		r.t.Fatalf("%s %s: %d %s", method, write, status, answer)
	}
}

// client keeps no connections, so that none outlives the test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func (r *reader) do(method, url, body string) (status int, answer string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (r *reader) startEtcd() {
	r.t.Helper()
	r.etcd = realserver.Start(r.t, realserver.Build(r.t, "etcd")).Addr()
}

// putEtcd writes a key of etcd.
func (r *reader) putEtcd(key, value string) {
	r.t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{r.etcd}, DialTimeout: patience})
	if err != nil {
		r.t.Fatal(err)
	}
	defer etcd.Close()
	if _, err := etcd.Put(r.t.Context(), key, value); err != nil {
		r.t.Fatal(err)
	}
}
