package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"time"
)

// policy lets the page load and ask only what its own origin serves, and lets no
// text become code: there is no inline script or style, and Trusted Types refuse
// every innerHTML (Content Security Policy Level 3).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Paths returns every path that Handler serves, sorted: "/" and the assets. They
// are exact, so that whoever mounts them keeps the answer to all other paths.
func Paths() []string {
	return slices.Sorted(maps.Keys(served))
}

// Handler serves the page at "/", and what it loads under "/assets/". Anything
// else is not found.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		// Asked for anew each time, and answered with 304 while it is the same:
		// after an upgrade nobody runs the old page against the new server.
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", f.tag)
		http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.content))
	})
}

// file is one file as it is served. Static after construction.
type file struct {
	name    string
	content []byte
	tag     string // ETag: a hash of the content
}

// served are the files by their path in the URL. Static after construction.
var served = load(Files)

func load(files fs.FS) map[string]file {
	out := map[string]file{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		sum := sha256.Sum256(content)
		out[pathOf(name)] = file{name: name, content: content, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
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
