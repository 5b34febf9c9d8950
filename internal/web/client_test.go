package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestClientIsForPagesOfEveryOrigin: they may import it, and nothing else.
func TestClientIsForPagesOfEveryOrigin(t *testing.T) {
	for _, p := range Paths() {
		allowed := get(t, p, "Origin", "https://app.example.com").Header.Get("Access-Control-Allow-Origin")
		if want := map[string]string{"/client.js": "*", "/client.d.ts": "*"}[p]; allowed != want {
			t.Errorf("%s: Access-Control-Allow-Origin %q, want %q", p, allowed, want)
		}
		if Public(p) != (allowed == "*") {
			t.Errorf("Public(%q) is %t, and the answer says %q", p, Public(p), allowed)
		}
	}
	if Public("/client") || Public("/v1/watches") {
		t.Error("more than the client is public")
	}
}

// TestClientLeavesThePermissionOfTheGateway, which is for one origin, and with credentials.
func TestClientLeavesThePermissionOfTheGateway(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Access-Control-Allow-Origin", "https://app.example.com")
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/client.js", nil))
	if got := w.Header().Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != "https://app.example.com" {
		t.Errorf("Access-Control-Allow-Origin %q, want the gateway's", got)
	}
}

// TestClientIsOfThisVersion: a browser asks for it each time, and gets 304 while it is the same.
func TestClientIsOfThisVersion(t *testing.T) {
	for _, p := range []string{"/client.js", "/client.d.ts"} {
		for _, coding := range []string{"", "gzip"} {
			h := get(t, p, "Accept-Encoding", coding).Header
			if h.Get("Cache-Control") != "no-cache" || h.Get("Content-Encoding") != coding || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: headers %v", p, h)
			}
			r := get(t, p, "Accept-Encoding", coding, "If-None-Match", h.Get("ETag"))
			if h.Get("ETag") == "" || r.StatusCode != http.StatusNotModified || r.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s, ETag %q: %s, %v, want 304, for every origin", p, h.Get("ETag"), r.Status, r.Header)
			}
		}
	}
}

func TestClientToHead(t *testing.T) {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/client.js", nil))
	if w.Code != http.StatusOK || w.Body.Len() != 0 || w.Result().ContentLength != int64(len(clientModule)) {
		t.Errorf("%d, %d bytes, Content-Length %d, want that of the file", w.Code, w.Body.Len(), w.Result().ContentLength)
	}
}

// TestClientInPieces: a piece is of the coding that is asked for, and never of another version or
// coding than the one that it continues.
func TestClientInPieces(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		whole := get(t, "/client.js", "Accept-Encoding", coding)
		content, err := io.ReadAll(whole.Body)
		if err != nil {
			t.Fatal(err)
		}
		tag, other := whole.Header.Get("ETag"), get(t, "/client.js", "Accept-Encoding", map[string]string{"": "gzip", "gzip": ""}[coding]).Header.Get("ETag")
		for _, c := range []struct {
			name   string
			header []string
			code   int
			want   string
		}{
			{"a piece", []string{"Range", "bytes=5-9"}, http.StatusPartialContent, string(content[5:10])},
			{"its rest", []string{"Range", "bytes=10-", "If-Range", tag}, http.StatusPartialContent, string(content[10:])},
			{"the rest of another coding", []string{"Range", "bytes=10-", "If-Range", other}, http.StatusOK, string(content)},
			{"more pieces than the whole", []string{"Range", "bytes=0-,0-,0-"}, http.StatusOK, string(content)},
			{"beyond the end", []string{"Range", "bytes=99999999-"}, http.StatusRequestedRangeNotSatisfiable, ""},
			{"no range", []string{"Range", "lines=1-2"}, http.StatusRequestedRangeNotSatisfiable, ""},
			{"another version", []string{"If-Match", `"x"`}, http.StatusPreconditionFailed, ""},
			{"any version", []string{"If-None-Match", "*"}, http.StatusNotModified, ""},
			{"this one or another", []string{"If-None-Match", `"x", W/` + tag}, http.StatusNotModified, ""},
			{"the other coding", []string{"If-None-Match", other}, http.StatusOK, string(content)},
		} {
			r := get(t, "/client.js", append(c.header, "Accept-Encoding", coding)...)
			body, err := io.ReadAll(r.Body)
			if err != nil || r.StatusCode != c.code || c.want != "" && string(body) != c.want {
				t.Errorf("%s, coding %q: %s, %d bytes, want %d and %d bytes", c.name, coding, r.Status, len(body), c.code, len(c.want))
			}
		}
	}
}

// TestClientInOddCodings: what a client does not name, or refuses, is not used.
func TestClientInOddCodings(t *testing.T) {
	for asked, want := range map[string]string{
		"br, zstd": "", "gzip;q=0": "", "gzip;q=abc": "", "identity;q=0, *;q=0": "", "GZIP": "gzip", "*": "gzip", "*;q=0, gzip": "gzip",
		"gzip;q=0.001": "gzip", ";;;": "", strings.Repeat("x,", 5000) + "gzip": "gzip",
	} {
		r := get(t, "/client.js", "Accept-Encoding", asked)
		if got := r.Header.Get("Content-Encoding"); r.StatusCode != http.StatusOK || got != want {
			t.Errorf("%.40q: %s, coding %q, want %q", asked, r.Status, got, want)
		}
	}
}

// TestClientImportsNothing: it is one file, which names no other origin. It says where its types are,
// and has the main functions of the entry points of the package.
func TestClientImportsNothing(t *testing.T) {
	r := get(t, "/client.js")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`\bimport\b|\bfrom["']|(https?|wss?)://[^"'` + "`" + `]+`).Find(body); found != nil {
		t.Errorf("client.js has %q", found)
	}
	for _, name := range []string{"watch", "RefusedError", "authenticated", "watchShared", "reportDelivery"} {
		if !regexp.MustCompile(`\bexport\{[^}]*\b` + name + `\b[^}]*\}`).Match(body) {
			t.Errorf("client.js does not export %s", name)
		}
	}
	types := path.Join("/", r.Header.Get("X-TypeScript-Types"))
	if got := get(t, types); got.StatusCode != http.StatusOK || !strings.HasSuffix(types, ".d.ts") {
		t.Errorf("types at %s: %s", types, got.Status)
	}
}
