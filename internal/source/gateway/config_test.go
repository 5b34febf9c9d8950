package gateway

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

func TestInvalidConfig(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"no URL":           {Config{}, "no URL: want a URL such as"},
		"no scheme":        {Config{URL: "core:8080"}, `url "core:8080": want a URL such as`},
		"another scheme":   {Config{URL: "ftp://core"}, "want a URL such as"},
		"no host":          {Config{URL: "http://:8080"}, "want a URL such as"},
		"a query":          {Config{URL: "http://core/?a=b"}, "without credentials, query or fragment"},
		"credentials":      {Config{URL: "http://u:secret@core"}, `url "http://u:xxxxx@core": want`},
		"TLS without TLS":  {Config{URL: "http://core", TLS: &tls.Config{}}, "want https, or no tls"},
		"negative stall":   {Config{URL: "http://core", StallAfter: -1}, "want 0 or more"},
		"negative size":    {Config{URL: "http://core", MaxEventBytes: -1}, "want 0 or more"},
		"header of ours":   {Config{URL: "http://core", Headers: adapter.Metadata{"accept": {Text: "x"}}}, `header name "accept": want the name`},
		"no header name":   {Config{URL: "http://core", Headers: adapter.Metadata{"a b": {Text: "x"}}}, `header name "a b": want the name`},
		"no header value":  {Config{URL: "http://core", Headers: adapter.Metadata{"x-a": {Text: "secret\n"}}}, `the value of header "x-a" cannot be sent`},
		"token and header": {Config{URL: "http://core", TokenFile: "f", Headers: adapter.Metadata{"authorization": {Text: "secret"}}}, "want token_file, or a header Authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
	u, err := New(Config{URL: "https://core.example.com/path/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Source("a b", nil); err == nil || !strings.Contains(err.Error(), `watch name "a b"`) {
		t.Errorf("error %v", err)
	}
	if _, err := u.Source("a", prefixed(t, "\xff")); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("error %v", err)
	}
}

func prefixed(t *testing.T, prefix string) *view.Definition {
	t.Helper()
	return definition(t, view.Params{Prefix: prefix})
}

func definition(t *testing.T, p view.Params) *view.Definition {
	t.Helper()
	d, err := view.Parse(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, u, stop := serve(t, Config{URL: "http://gateway.test/a%2Fpath/", Headers: adapter.Metadata{"x-team": {Text: "blue"}}}, replies(primed(), goodbye("draining", 0)))
		defer stop()
		s, err := u.Source("w", prefixed(t, "a b/"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Watch(t.Context(), stream.Resume{Epoch: "e", Revision: 7}, &calls{}); err != nil {
			t.Fatal(err)
		}
		r := f.requests[0]
		if want := "/a%2Fpath/v1/events?deletes=1&prefix.w=a+b%2F&watch=w"; r.RequestURI != want {
			t.Errorf("request %s, want %s", r.RequestURI, want)
		}
		for name, want := range map[string]string{"Accept": "*/*", "Last-Event-Id": "w@e-7", "X-Team": "blue"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// The token may rotate, and is in no error, even if the upstream repeats it.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		repeats := func(w http.ResponseWriter, r *http.Request) {
			refuses(401, "bad header: "+r.Header.Get("Authorization"))(w, r)
		}
		_, u, stop := serve(t, Config{TokenFile: file}, repeats)
		defer stop()
		s := sourceOf(t, u, "w")
		if _, _, err := watchOnce(t, s); err == nil || !strings.Contains(err.Error(), `watch "w": token file: open `+file) {
			t.Errorf("without a file: error %v", err)
		}
		for text, want := range map[string]string{
			"secret-one\n": "bad header: [hidden];", "secret-two": "bad header: [hidden];",
			"two\nlines": "want one line of text", "\n": "want one line of text",
		} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := watchOnce(t, s)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: error %v, want %s", text, err, want)
			}
		}
	})
}

func TestTokenThatWasRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		key := filepath.Join(t.TempDir(), "key")
		f, u, stop := serve(t, Config{TokenFile: file, Headers: adapter.Metadata{"X-Api-Key": {File: key}}}, replies(primed(), goodbye("max_age", 0)))
		defer stop()
		s := sourceOf(t, u, "w")
		for i := range 2 {
			if err := os.WriteFile(file, fmt.Append(nil, "token-", i), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(key, fmt.Append(nil, "key-", i, "\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := watchOnce(t, s); err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{"Authorization": fmt.Sprint("Bearer token-", i), "X-Api-Key": fmt.Sprint("key-", i)} {
				if got := f.requests[i].Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		}
	})
}

// TestClosedSourcesAreNotWaitedFor: a request gathers the watches of all sources, and so
// would wait for those that were closed.
func TestClosedSourcesAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := New(Config{URL: "http://core"})
		if err != nil {
			t.Fatal(err)
		}
		var sources []*Source
		for _, name := range []string{"a", "b"} {
			s, err := u.Source(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, s)
		}
		complete := func() bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			return u.completeLocked()
		}
		u.connections = []*connection{newConnection(u, &member{source: sources[0]})}
		<-time.After(gatherFor)
		if complete() {
			t.Error("a source is not waited for that is to be watched")
		}
		sources[1].Close()
		if !complete() {
			t.Error("a closed source is waited for")
		}
	})
}
