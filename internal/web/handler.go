package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/headers"
)

// policy lets the page load and request only what its own origin serves, and lets no
// text become code: there is no inline script or style, and Trusted Types reject
// every innerHTML, and every script but the dashboard's own worker (Content Security
// Policy Level 3).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types watchtide-worker"

// Paths returns every path that Handler serves, sorted: "/", the assets, the client at "/client.js",
// and the documentation below "/docs/". They are exact, so that the caller that mounts them keeps the
// answer to all other paths.
func Paths() []string {
	return slices.Sorted(maps.Keys(served()))
}

// Handler serves the page at "/", what it loads under "/assets/", the client at "/client.js" with its
// types, and the documentation under "/docs/". Anything else is not found.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/docs" {
			w.Header().Set("Location", "docs/") // relative: a proxy may serve this under a path
			w.WriteHeader(http.StatusFound)
			return
		}
		f, ok := served()[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", f.cached)
		h.Add("Vary", "Accept-Encoding") // beside what the gateway sets for Origin
		content, tag := f.content, f.tag
		if zipped := f.zipped(); zipped != nil && headers.AcceptsGzip(r.Header.Values("Accept-Encoding")) {
			content, tag = zipped, strings.TrimSuffix(tag, `"`)+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
		h.Set("ETag", tag)
		if f.public {
			permit(h)
		}
		for name, value := range f.header {
			h.Set(name, value)
		}
		http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(content))
	})
}

// file is one file as it is served. Static after construction.
type file struct {
	name    string
	content []byte
	tag     string // ETag: a hash of the content
	cached  string // Cache-Control
	public  bool   // pages of every origin may read it
	header  map[string]string
	zipped  func() []byte // the content through gzip; nil if that saves too little
}

// served returns the files by their path in the URL. They do not change.
var served = sync.OnceValue(func() map[string]file {
	out := load(Files)
	maps.Copy(out, clientFiles())
	out["/docs"] = file{}
	maps.Copy(out, manualFiles())
	return out
})

const (
	// A file is requested again each time, and answered with 304 while it is unchanged: after an
	// upgrade no browser runs the old page against the new server.
	noCache = "no-cache"
	// A file whose name changes with its content is never requested again.
	immutable = "public, max-age=31536000, immutable"
)

// hashed matches the names of files that have a hash of the content.
var hashed = regexp.MustCompile(`-[\w-]{8}\.(js|css)$`)

func newFile(name string, content []byte) file {
	sum := sha256.Sum256(content)
	cached := noCache
	if hashed.MatchString(name) {
		cached = immutable
	}
	return file{
		name: name, content: content, tag: `"` + hex.EncodeToString(sum[:8]) + `"`, cached: cached,
		zipped: sync.OnceValue(func() []byte { return zip(content) }),
	}
}

func load(files fs.FS) map[string]file {
	out := map[string]file{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		out[pathOf(name)] = newFile(name, content)
		return err
	})
	if err != nil {
		panic("web: " + err.Error()) // the files are in memory: never
	}
	return out
}

func pathOf(name string) string {
	if name == "index.html" {
		return "/"
	}
	return "/" + name
}

// zip returns nil if it saves less than a tenth.
func zip(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic("web: " + err.Error()) // the level is a constant: never
	}
	_, _ = w.Write(content) // into memory
	_ = w.Close()
	if b.Len() > len(content)*9/10 {
		return nil
	}
	return b.Bytes()
}
