package commands

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asCommand makes the test binary the command itself, for tests that need a
// separate process.
const asCommand = "WATCHTIDE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main("", ""))
	}
	for _, name := range []string{"WATCHTIDE_SERVER", "WATCHTIDE_TOKEN", "WATCHTIDE_CONTEXTS"} {
		os.Unsetenv(name)
	}
	dir, err := os.MkdirTemp("", "contexts")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", dir) // so that nobody's contexts count
	os.Setenv("XDG_STATE_HOME", dir)  // nor states
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// patience is how long a test waits for a required event. Only failing tests
// wait that long.
const patience = 30 * time.Second

// running is a command line that runs in this process.
type running struct {
	t       *testing.T
	signals chan os.Signal
	out     <-chan string // lines of stdout; closed at the end
	logs    *lines
	code    <-chan int
}

// lines is a writer that keeps lines, and signals each. Any goroutine may use it.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and replaced at each write
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.more)
	l.more = make(chan struct{})
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until the text contains part, and returns it.
func (l *lines) await(t *testing.T, want string) string {
	t.Helper()
	return l.awaitTimes(t, want, 1)
}

// awaitTimes waits until the text contains it a number of times.
func (l *lines) awaitTimes(t *testing.T, want string, times int) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		l.mu.Lock()
		text, more := l.text.String(), l.more
		l.mu.Unlock()
		if strings.Count(text, want) >= times {
			return text
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("no %q in:\n%s", want, text)
		}
	}
}

// start runs a command line, and interrupts it at the end of the test.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	reader, writer := io.Pipe()
	out, code := make(chan string), make(chan int, 1)
	r := &running{t: t, signals: make(chan os.Signal, 2), out: out, logs: newLines(), code: code}
	p := process{stdout: writer, stderr: r.logs, signals: r.signals,
		exit: func(code int) { t.Errorf("exit(%d)", code) }}
	go func() {
		defer close(out)
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			out <- scanner.Text()
		}
	}()
	go func() {
		code <- run(context.Background(), p, args)
		writer.Close()
	}()
	t.Cleanup(func() {
		select {
		case r.signals <- os.Interrupt:
		default:
		}
		for range out {
		}
	})
	return r
}

// line returns the next line of stdout.
func (r *running) line() string {
	r.t.Helper()
	select {
	case line, ok := <-r.out:
		if !ok {
			r.t.Fatalf("the output has ended; stderr:\n%s", r.logs)
		}
		return line
	case <-time.After(patience):
		r.t.Fatalf("no line; stderr:\n%s", r.logs)
	}
	return ""
}

// omitted is the instance, which is in hello, and random, and digests.
var omitted = regexp.MustCompile(`"instance":"[a-z2-7]{12}",|,"digest":"\d+-[0-9a-f]{32}"`)

// expect compares the next lines of stdout, except for what is omitted.
func (r *running) expect(want ...string) {
	r.t.Helper()
	for _, w := range want {
		if got := omitted.ReplaceAllString(r.line(), ""); got != w {
			r.t.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}

// expectOf compares the next lines of stdout that are events of these types.
func (r *running) expectOf(types ...string) func(want ...string) {
	return func(want ...string) {
		r.t.Helper()
		for _, w := range want {
			line := r.line()
			for !slices.ContainsFunc(types, func(name string) bool { return strings.HasPrefix(line, `{"type":"`+name+`"`) }) {
				line = r.line()
			}
			if line = omitted.ReplaceAllString(line, ""); line != w {
				r.t.Fatalf("got  %s\nwant %s", line, w)
			}
		}
	}
}

// awaitCode returns the exit code; the rest of stdout is ignored.
func (r *running) awaitCode() int {
	r.t.Helper()
	go func() {
		for range r.out {
		}
	}()
	select {
	case code := <-r.code:
		return code
	case <-time.After(patience):
		r.t.Fatalf("the command has not ended; stderr:\n%s", r.logs)
	}
	return -1
}

// served is a gateway that runs in this process.
type served struct {
	*running
	http, grpc, operations string // host:port
	primed                 sync.Once
}

func (s *served) url() string { return "http://" + s.http }

// serve runs "serve" on free ports and waits until it listens.
func serve(t *testing.T, args ...string) *served {
	t.Helper()
	r := start(t, append([]string{"serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--operations", "127.0.0.1:0"}, args...)...)
	for line := range strings.Lines(r.logs.await(t, `"listening"`)) {
		var entry struct{ Msg, HTTP, GRPC, Operations string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
			return &served{running: r, http: entry.HTTP, grpc: entry.GRPC, operations: entry.Operations}
		}
	}
	t.Fatalf("not a line of JSON:\n%s", r.logs)
	return nil
}

// do sends a request and returns the status and the body.
func (s *served) do(method, path, body string) (int, string) {
	s.t.Helper()
	return fetch(s.t, http.DefaultTransport, method, s.url()+path, body)
}

func fetch(t *testing.T, transport http.RoundTripper, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // so that nothing is left over
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// awaitPrimed waits until the watch notes is primed, which a list does.
func (s *served) awaitPrimed() {
	s.primed.Do(func() { s.do("GET", "/v1/watches/notes/resources?page_size=1", "") })
}

// put writes a resource of the watch notes.
func (s *served) put(key, value string) {
	s.t.Helper()
	s.awaitPrimed()
	if status, body := s.do("PUT", "/v1/watches/notes/resources/"+key, value); status != 201 && status != 200 {
		s.t.Fatalf("PUT %s: %d %s", key, status, body)
	}
}

func (s *served) remove(key string) {
	s.t.Helper()
	if status, body := s.do("DELETE", "/v1/watches/notes/resources/"+key, ""); status >= 300 {
		s.t.Fatalf("DELETE %s: %d %s", key, status, body)
	}
}

// file writes a file and returns its name.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs a command line to its end.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := process{stdout: &out, stderr: &errs, exit: func(int) {}}
	code = run(t.Context(), p, args)
	return code, out.String(), errs.String()
}
