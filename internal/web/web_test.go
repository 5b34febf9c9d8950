package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// texts returns every embedded file by its name.
func texts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(Files, name)
		out[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	// A URL with a host: of another origin, or of this one but without the path
	// under which a proxy serves the page. A namespace is a name, not a URL.
	namespace = regexp.MustCompile(`xmlns(:\w+)?="[^"]*"`)
	absolute  = regexp.MustCompile(`(?i)\b(https?|wss?|ftp|data|blob|javascript):|["'(=]\s*//\w`)
	// A reference that starts at the root of the host.
	rooted = regexp.MustCompile(`(?i)(src|href|action)\s*=\s*["']?/|url\(\s*["']?/|(from|import|fetch\(|EventSource\()\s*["'` + "`" + `]/`)
	// Forbidden by the policy: code or style in the page, and text as markup.
	inline = regexp.MustCompile(`(?is)<style|\sstyle\s*=|<[a-z][^>]*\son\w+\s*=|<script(?:[^>]*)>\s*[^<\s]|<script(?:\s+(?:type|async|defer)[^>\s]*)*\s*>`)
	markup = regexp.MustCompile(`(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment|setHTMLUnsafe|srcdoc|\.style\b|cssText`)
)

// built reports whether a file is the bundle, most of which is third-party code:
// browser tests show whether it keeps the policy (dashboard/browser).
func built(name string) bool { return path.Ext(name) == ".js" || path.Ext(name) == ".txt" }

// known are the URLs in the bundle that are never requested: namespaces, and where
// React explains its errors.
var known = regexp.MustCompile(`http://www\.w3\.org/[\w/]+|https://react\.dev/errors/`)

func TestTheBundleNamesNoOtherOrigin(t *testing.T) {
	url := regexp.MustCompile("(?i)\\b(https?|wss?|ftp)://[^\"'`]+")
	for name, text := range texts(t) {
		if path.Ext(name) != ".js" {
			continue
		}
		if found := url.FindString(known.ReplaceAllString(text, "")); found != "" {
			t.Errorf("%s: %q: want URLs relative to the page alone", name, found)
		}
	}
}

func TestNothingLeavesTheOrigin(t *testing.T) {
	for name, text := range texts(t) {
		if built(name) {
			continue
		}
		text = namespace.ReplaceAllString(text, "")
		for _, bad := range []*regexp.Regexp{absolute, rooted} {
			if found := bad.FindString(text); found != "" {
				t.Errorf("%s: %q: want a URL relative to the page, so that it works under any path", name, found)
			}
		}
	}
}

func TestNothingIsInline(t *testing.T) {
	for name, text := range texts(t) {
		if built(name) {
			continue
		}
		for _, bad := range []*regexp.Regexp{inline, markup} {
			if found := bad.FindString(text); found != "" {
				t.Errorf("%s: %q: the content security policy forbids it", name, found)
			}
		}
	}
}

// TestTheseTestsCanFail shows each pattern what it must match, and what not.
func TestTheseTestsCanFail(t *testing.T) {
	for _, c := range []struct {
		pattern *regexp.Regexp
		text    string
		want    bool
	}{
		{absolute, `<script src="https://cdn.example/x.js">`, true},
		{absolute, `import x from '//cdn.example/x.js'`, true},
		{absolute, `url(data:image/png;base64,xx)`, true},
		{absolute, "// what follows is a comment\nx = 1", false},
		{rooted, `<link href="/assets/app.css">`, true},
		{rooted, `url('/assets/x.svg')`, true},
		{rooted, "fetch(`/v1/watches`)", true},
		{rooted, `<link href="assets/app.css">`, false},
		{inline, `<p style="color:red">`, true},
		{inline, `<a href="x" onclick="y()">`, true},
		{inline, "<script>\n x()</script>", true},
		{inline, `<script type="module">x()</script>`, true},
		{inline, `<script type="module" src="assets/app.js"></script>`, false},
		{markup, `e.innerHTML = x`, true},
		{markup, `e.style.color = x`, true},
		{markup, `e.textContent = x`, false},
	} {
		if got := c.pattern.MatchString(c.text); got != c.want {
			t.Errorf("%q: found is %t, want %t", c.text, got, c.want)
		}
	}
}

// TestEveryReferenceExists: everything that the page loads and its modules
// import is embedded, and everything embedded is used.
func TestEveryReferenceExists(t *testing.T) {
	files := texts(t)
	used := map[string]bool{"index.html": true}
	// In the bundle as referenced from the page, or beside the file itself (a worker, a style).
	reference := regexp.MustCompile("[\"'`](?:\\./)?(assets/[\\w.-]+)[\"'`]|(?:new URL\\(|import\\(|from|import) ?[\"'`](?:\\./)?([\\w-][\\w.-]*\\.\\w+)[\"'`]|[\"'`]\\./([\\w.-]+\\.css)[\"'`]")
	for name, text := range files {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			target := m[1]
			if target == "" {
				target = path.Join(path.Dir(name), m[2]+m[3])
			}
			if _, ok := files[target]; !ok {
				t.Errorf("%s names %s, which is not embedded", name, target)
			}
			used[target] = true
		}
	}
	for name := range files {
		if !used[name] {
			t.Errorf("%s is embedded and nothing names it", name)
		}
	}
}

func get(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestHandlerServesEveryPath(t *testing.T) {
	types := map[string]string{"": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain", ".json": "application/json", ".ts": "text/typescript"}
	if paths := Paths(); len(paths) < 2 || !slices.Contains(paths, "/") || !slices.IsSorted(paths) {
		t.Fatalf("Paths() = %v", paths)
	}
	for _, p := range Paths() {
		if p == "/docs" {
			continue // a redirect
		}
		r := get(t, p)
		if want := types[path.Ext(p)]; r.StatusCode != http.StatusOK || want == "" || !strings.HasPrefix(r.Header.Get("Content-Type"), want) {
			t.Errorf("%s: %s, Content-Type %q, want %q", p, r.Status, r.Header.Get("Content-Type"), want)
		}
	}
}

func TestHandlerSendsThePolicy(t *testing.T) {
	h := get(t, "/").Header
	for _, directive := range []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
		"frame-ancestors 'none'", "require-trusted-types-for 'script'",
	} {
		if !strings.Contains(h.Get("Content-Security-Policy"), directive) {
			t.Errorf("Content-Security-Policy %q: want %s", h.Get("Content-Security-Policy"), directive)
		}
	}
	if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
		t.Errorf("Content-Security-Policy %q allows something unsafe", h.Get("Content-Security-Policy"))
	}
	if h.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("X-Content-Type-Options is missing")
	}
}

// script returns the path of the largest script, which browsers keep.
func script(t *testing.T) string {
	t.Helper()
	for _, p := range Paths() {
		if strings.HasPrefix(p, "/assets/index-") {
			return p
		}
	}
	t.Fatal("there is no script")
	return ""
}

// TestFilesWithAHashAreKept: browsers keep them, and ask for all others each time.
func TestFilesWithAHashAreKept(t *testing.T) {
	for _, p := range []string{"/", "/assets/boot.js", "/assets/style.css", "/docs/"} {
		if got := get(t, p).Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("%s: Cache-Control %q, want no-cache", p, got)
		}
	}
	if got := get(t, script(t)).Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("%s: Cache-Control %q, want immutable", script(t), got)
	}
}

// TestFirstLoad: what a first visit loads is at most 100 kB, compressed. The first page is the
// topology for operators, and the watches for all others.
func TestFirstLoad(t *testing.T) {
	for _, page := range []string{"TopologyPage", "Overview"} {
		v := visit{seen: map[string]bool{}}
		for _, p := range append([]string{"/", "/assets/boot.js", "/assets/style.css", script(t)}, filesOf(t, page)...) {
			v.add(t, p)
		}
		t.Logf("%s: %d bytes in %d files", page, v.bytes, len(v.seen))
		if v.bytes > 100_000 {
			t.Errorf("a first visit of %s loads %d bytes, compressed: want at most 100,000", page, v.bytes)
		}
	}
}

// visit adds up the files that a page loads.
type visit struct {
	seen  map[string]bool
	bytes int
}

var imports = regexp.MustCompile("(?:from|import) ?[\"'`]\\./([\\w.-]+\\.js)")

// add counts a file, and those that it imports.
func (v *visit) add(t *testing.T, path string) {
	t.Helper()
	if v.seen[path] {
		return
	}
	v.seen[path] = true
	zipped, plain := get(t, path, "Accept-Encoding", "gzip"), get(t, path)
	if zipped.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, zipped.Status)
	}
	body, _ := io.ReadAll(zipped.Body)
	v.bytes += len(body)
	text, _ := io.ReadAll(plain.Body)
	for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
		v.add(t, "/assets/"+m[1])
	}
}

// filesOf returns the paths of the scripts and styles that are loaded with a page.
func filesOf(t *testing.T, page string) (files []string) {
	t.Helper()
	text, _ := io.ReadAll(get(t, script(t)).Body)
	listed := regexp.MustCompile(`m\.f=\[([^\]]*)\]`).FindStringSubmatch(string(text))
	wanted := regexp.MustCompile(page + "-[\\w-]+\\.js.{0,80}?__vite__mapDeps\\(\\[([\\d,]*)\\]").FindStringSubmatch(string(text))
	if listed == nil || wanted == nil {
		t.Fatalf("the files of %s are not found", page)
	}
	all := strings.Split(listed[1], ",")
	for _, n := range strings.Split(wanted[1], ",") {
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, "/assets/"+strings.Trim(all[i], "\"'`./"))
	}
	return files
}

func TestHandlerAnswersUnchangedFilesWith304(t *testing.T) {
	tag := get(t, script(t)).Header.Get("ETag")
	if r := get(t, script(t), "If-None-Match", tag); tag == "" || r.StatusCode != http.StatusNotModified {
		t.Errorf("ETag %q: %s, want 304", tag, r.Status)
	}
	if other := get(t, "/assets/style.css").Header.Get("ETag"); other == tag {
		t.Errorf("two files have the ETag %s", tag)
	}
}

func TestHandlerCompressesForThoseWhoTakeIt(t *testing.T) {
	plain := get(t, script(t))
	zipped := get(t, script(t), "Accept-Encoding", "gzip, deflate, br")
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("ETag") == plain.Header.Get("ETag") || zipped.ContentLength > plain.ContentLength/2 {
		t.Errorf("headers %v, %d bytes of %d", zipped.Header, zipped.ContentLength, plain.ContentLength)
	}
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	want, _ := io.ReadAll(plain.Body)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v; %d bytes, want %d", err, len(got), len(want))
	}
	if r := get(t, script(t), "Accept-Encoding", "identity, gzip;q=0"); r.Header.Get("Content-Encoding") != "" {
		t.Error("compressed for a client that does not take it")
	}
}

func TestHandlerServesNothingElse(t *testing.T) {
	for _, p := range []string{"/index.html", "/assets/", "/assets", "/embed.go", "/assets/../../handler.go"} {
		if r := get(t, p); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s, want 404", p, r.Status)
		}
	}
}
