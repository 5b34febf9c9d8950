package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// endless writes a text until the client has gone.
func endless(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
}

const oneWatch = `{"instance":"x","watches":[{"name":"orders","state":"in_sync","epoch":"e1"}]}`

// TestHostileServers checks that nothing that a server sends keeps the doctor busy for ever.
func TestHostileServers(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"an endless document": endless(strings.Repeat(" ", 64<<10)),
		"an endless line":     endless(strings.Repeat("x", 64<<10)),
		"endless empty lines": endless(strings.Repeat("\n", 64<<10)),
		"endless comments":    endless(strings.Repeat(": x\n", 16<<10)),
		"endless hellos":      endless(strings.Repeat(`data: {"type":"hello","heartbeat_ms":1}`+"\n\n", 1<<10)),
		"a huge header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 2*maxHeader))
		},
		"no header": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a silent body": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"nothing but a goodbye": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `data: {"type":"goodbye","reason":"overloaded"}`+"\n\n")
		},
		"a strange heartbeat": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `data: {"type":"hello","heartbeat_ms":9223372036854775807}`+"\n\n")
		},
		"polls at once": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"position":"x"}`) },
	}
	for name, answer := range answers {
		for _, what := range []string{listPath, "/v1/client", "/events", "/changes"} {
			if what != "/events" && strings.HasPrefix(name, "endless") {
				continue // elsewhere it is like an endless document
			}
			t.Run(name+" of "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWay(t)
					w.options.Origin = ""
					w.serveHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						switch {
						case !strings.HasSuffix(r.URL.Path, what):
							sensible(w, r)
						case what == "/events":
							w.Header().Set("Content-Type", "text/event-stream")
							answer(w, r)
						default:
							answer(w, r)
						}
					}))
					began := time.Now()
					all, err := w.examine(t.Context())
					if err != nil || len(all) < 2 {
						t.Errorf("%v, %v", all, err)
					}
					if took := time.Since(began); took > 3*time.Minute {
						t.Errorf("took %v", took)
					}
				})
			})
		}
	}
}

// sensible answers roughly as a gateway does.
func sensible(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/events"):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"type":"hello","instance":"x","heartbeat_ms":15000,"watches":[{"mode":"resume"}]}`+"\n\nid: x\n\n")
		if r.URL.Query().Has("until") {
			fmt.Fprint(w, `data: {"type":"goodbye","reason":"complete"}`+"\n\n")
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/changes"):
		wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `{"position":"x"}`)
	case r.URL.Path == "/v1/client":
		fmt.Fprint(w, `{"address":"198.51.100.7","naming":"trusted"}`)
	default:
		fmt.Fprint(w, oneWatch)
	}
}

const (
	secret      = "very-secret-token"
	otherSecret = "very-secret-key"
)

// TestTokensAreKept checks that a token and the headers of the options are sent to a server with a
// valid certificate alone, and that they are not printed even if the server sends them back.
func TestTokensAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		certificate certified
		sent        bool
	}{"a valid certificate": {certified{}, true}, "a wrong certificate": {certified{unknown: true}, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWay(t)
				certificate(c.certificate)(w)
				w.options.Token = func(context.Context) (string, error) { return secret, nil }
				w.options.Header = http.Header{"X-Key": {otherSecret}, "X-Tenant": {"1"}, "Accept": {"text/html"}}
				sent := false
				w.serveHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					sent = sent || r.Header.Get("Authorization") == "Bearer "+secret
					if key := r.Header.Get("X-Key"); (key == otherSecret) != sent || (r.Header.Get("X-Tenant") == "1") != sent {
						t.Errorf("%s: a token is sent: %t, and the key %q", r.URL, sent, key)
					}
					if r.Header.Get("Accept") == "text/html" && r.URL.Path == "/v1/events" {
						t.Error("a header of the options has replaced one of the request")
					}
					if sent {
						w.Header().Set("Content-Type", "application/problem+json")
						w.WriteHeader(http.StatusForbidden)
						fmt.Fprintf(w, `{"detail":"not %s, nor %s"}`, secret, otherSecret)
						return
					}
					sensible(w, r)
				}))
				all, err := w.examine(t.Context())
				if err != nil || sent != c.sent {
					t.Errorf("sent: %t, %v; want %t", sent, err, c.sent)
				}
				for _, f := range all {
					if strings.Contains(f.Found+f.Mend, secret) || strings.Contains(f.Found+f.Mend, otherSecret) {
						t.Errorf("%+v has the token", f)
					}
				}
			})
		})
	}
}

// TestEndOfContext checks that the doctor ends with its context, and blames nobody for it.
func TestEndOfContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWay(t)
		w.serve()
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, over)
		defer cancel()
		all, err := w.examine(ctx)
		if !errors.Is(err, over) {
			t.Errorf("error %v", err)
		}
		for _, f := range all {
			if f.Result == Problem || f.Check == Heartbeats || f.Check == Cookies {
				t.Errorf("%+v: found after the end", f)
			}
		}
		if len(all) < 5 || len(w.doing) < 4 {
			t.Errorf("found %v, reported %q", all, w.doing)
		}
	})
}

// TestOptions checks that wrong options are refused.
func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{URL: ""}, {URL: "events.example.com"}, {URL: "ftp://events.example.com"}, {URL: "https://"}, {URL: "https://ann:secret@events.example.com"},
		{URL: siteURL + "?x=1"}, {URL: siteURL, Origin: "app.example.com"}, {URL: siteURL, Origin: pages + "/"}, {URL: siteURL, Wait: MaxWait + 1}, {URL: siteURL, Wait: -1},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := New(Options{URL: siteURL + "/live/", Origin: pages}); err != nil {
		t.Error(err)
	}
}
