package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// TestCredentialsStayWithTheServer: the token is for no other host, and for no plain
// connection.
func TestCredentialsStayWithTheServer(t *testing.T) {
	received := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewTLSServer(http.RedirectHandler(other.URL+"/api/v1/pods", code))
		t.Cleanup(server.Close)
		err := record(t, withToken(t, server.URL, "s3cr3t-t0ken"), nil).failure()
		if err == nil || !strings.Contains(err.Error(), "want the address of the API server itself") {
			t.Errorf("%d: error %v, want one that says what to configure", code, err)
		}
		select {
		case token := <-received:
			t.Errorf("%d: the other host received %q", code, token)
		default:
		}
	}
}

// withToken returns a source that sends a token.
func withToken(t *testing.T, server, token string) *Source {
	t.Helper()
	return withUser(t, server, fmt.Sprintf("token: %q", token))
}

// withUser returns a source with credentials, as a kubeconfig has them.
func withUser(t *testing.T, server, user string) *Source {
	t.Helper()
	config := strings.NewReplacer("user: {}", "user: {"+user+"}", "cluster: {server", "cluster: {insecure-skip-tls-verify: true, server").Replace(kubeconfigOf(server))
	return mustNew(t, Config{Objects: Objects{Version: "v1", Resource: "pods"}, Kubeconfig: writeFile(t, "kubeconfig", config)})
}

// TestSecretsStayHidden: the server may repeat what it was sent, in whatever way.
func TestSecretsStayHidden(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, r *http.Request) {
			replies(401, status(401, "Unauthorized", "unknown: "+r.Header.Get("Authorization")))(w, r)
		},
		"page": func(w http.ResponseWriter, r *http.Request) {
			replies(502, "<html>"+r.Header.Get("Authorization"))(w, r)
		},
		"cut": func(w http.ResponseWriter, r *http.Request) {
			replies(406, strings.Repeat("x", 182)+r.Header.Get("Authorization"))(w, r)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/?token="+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			w.WriteHeader(302)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(answer)
			t.Cleanup(server.Close)
			err := record(t, withToken(t, server.URL, "s3cr3t-t0ken"), nil).failure()
			if err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "[hidden]") {
				t.Errorf("error %v, want one without the token", err)
			}
		})
	}
}

// TestPasswordStaysHidden: it is sent in another form.
func TestPasswordStaysHidden(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		replies(401, status(401, "Unauthorized", "wrong: "+password))(w, r)
	}))
	t.Cleanup(server.Close)
	s := withUser(t, server.URL, "username: gateway, password: s3cr3t-w0rd")
	if err := record(t, s, nil).failure(); err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "[hidden]") {
		t.Errorf("error %v, want one without the password", err)
	}
}

// TestListsThatAreNone: pages that do not end, or are not of one state.
func TestListsThatAreNone(t *testing.T) {
	a, b := widget("a", 5), widget("b", 6)
	for name, c := range map[string]struct {
		list http.HandlerFunc
		most int // requests
	}{
		"the same token again":  {replies(200, listOf(9, "next")), 2},
		"the same page again":   {inTurn(replies(200, listOf(9, "x", a, b)), replies(200, listOf(9, "y", a, b))), 2},
		"back to an older page": {inTurn(replies(200, listOf(9, "x", a)), replies(200, listOf(9, "y", b)), replies(200, listOf(9, "z", a))), 3},
		"empty pages":           {alternates(listOf(9, "x"), listOf(9, "y")), maxEmptyPages + 1},
		"two states":            {inTurn(replies(200, listOf(9, "x", a)), replies(200, listOf(10, "", b))), 2},
		"an older state":        {inTurn(replies(200, listOf(9, "x", a)), replies(200, listOf(8, "", b))), 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				f.source.paged, f.list, f.watch = true, atMost(c.most+5, c.list), stalls()
				r := f.start(nil)
				if err := r.end(); !errors.Is(err, stream.ErrInvalid) {
					t.Errorf("error %v, want one that wraps %q", err, stream.ErrInvalid)
				}
				if n := strings.Count(f.requests(), "list"); n > c.most {
					t.Errorf("%d requests, want %d", n, c.most)
				}
				if n := len(r.Commits()); n > 0 {
					t.Errorf("%d commits of a list that is none", n)
				}
			})
		})
	}
}

// atMost answers so often, and then refuses to.
func atMost(n int, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n--; n < 0 {
			answer = replies(500, "too many requests")
		}
		answer(w, r)
	}
}

// alternates answers with one body and the other, for ever.
func alternates(bodies ...string) http.HandlerFunc {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		n++
		replies(200, bodies[n%len(bodies)])(w, r)
	}
}

// TestRevisionsOfAWatch: what does not rise may be a change that the source would
// take for one that it knows.
func TestRevisionsOfAWatch(t *testing.T) {
	for name, events := range map[string][]string{
		"two changes at one":              {line(modified, widget("a", 9)), line(modified, widget("a", 9))},
		"deleted and made again at one":   {line(deleted, widget("a", 9)), line(added, widget("a", 9))},
		"two objects at one":              {line(added, widget("b", 9)), line(added, widget("c", 9))},
		"an older change of another":      {line(modified, widget("a", 9)), line(added, widget("b", 8))},
		"a change before the snapshot":    {line(added, widget("b", 6))},
		"a deletion before the snapshot":  {line(deleted, widget("a", 6))},
		"a bookmark before the snapshot":  {bookmarkAt(6)},
		"a change before a bookmark":      {bookmarkAt(20), line(added, widget("b", 15))},
		"a bookmark that repeats, behind": {bookmarkAt(20), bookmarkAt(19)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, resumes := range []bool{false, true} {
				inBubble(t, func(f *fake) {
					var before *run
					if resumes {
						before = f.primed()
						f.head = replies(200, listOf(30, ""))
					}
					f.initial = stalls(append([]string{line(added, widget("a", 5)), markerAt(7)}, events...)...)
					f.watch = stalls(events...)
					r := f.start(before)
					if err := r.end(); !errors.Is(err, stream.ErrOrder) {
						t.Errorf("resumes: %v: error %v, want one that wraps %q", resumes, err, stream.ErrOrder)
					}
				})
			}
		})
	}
}

// TestObjectsThatDoNotEnd: each has a limit, in a list, in a watch and in any other answer.
func TestObjectsThatDoNotEnd(t *testing.T) {
	endless := func(begin string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, begin)
			chunk := strings.Repeat("x", 64<<10)
			for i := 0; i < 500 && r.Context().Err() == nil; i++ { // 32 MB stand for what does not end
				if _, err := fmt.Fprint(w, chunk); err != nil {
					return
				}
			}
		}
	}
	for name, set := range map[string]func(f *fake){
		"object of a list":    func(f *fake) { f.source.paged, f.list = true, endless(`{"kind":"WidgetList","items":[{"x":"`) },
		"metadata of a list":  func(f *fake) { f.source.paged, f.list = true, endless(`{"metadata":{"continue":"`) },
		"unknown member":      func(f *fake) { f.source.paged, f.list = true, endless(`{"x":"`) },
		"name of a member":    func(f *fake) { f.source.paged, f.list = true, endless(`{"`) },
		"initial event":       func(f *fake) { f.initial = endless(`{"type":"ADDED","object":{"x":"`) },
		"event":               func(f *fake) { f.initial = endless(markerAt(7) + `{"type":"ADDED","object":{"x":"`) },
		"object of a cluster": func(f *fake) { f.cluster = endless(`{"metadata":{"uid":"`) },
		"present revision":    func(f *fake) { f.head = endless(`{"metadata":{"resourceVersion":"`) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				f.source.config.maxObject = 256 << 10
				set(f)
				if err := f.start(nil).end(); !errors.Is(err, errTooLong) {
					t.Errorf("error %v, want %v", err, errTooLong)
				}
			})
		})
	}
}

// holdingSink counts what the source holds.
type holdingSink struct {
	stream.Sink
	held, most int64
}

// Hold implements [stream.SinkExtension].
func (h *holdingSink) Charge(bytes int64) { h.held += bytes; h.most = max(h.most, h.held) }

// TestListsAreReadObjectByObject: what is held is about one object, and given back.
func TestListsAreReadObjectByObject(t *testing.T) {
	inBubble(t, func(f *fake) {
		const objects, size = 100, 100_000
		var items []string
		for i := range objects {
			items = append(items, strings.Replace(widget(fmt.Sprintf("w%03d", i), 5), `"kind"`, `"x":"`+strings.Repeat("x", size)+`","kind"`, 1))
		}
		f.source.paged, f.list, f.watch = true, replies(200, listOf(9, "", items...)), stalls()
		h := &holdingSink{}
		r := f.startInto(stream.Resume{}, nil, func(s stream.Sink) stream.Sink { h.Sink = s; return h })
		r.running()
		if n := len(r.State()); n != objects {
			t.Errorf("%d objects, want %d", n, objects)
		}
		r.stop()
		if h.held != 0 || h.most < copies*size || h.most > 4*copies*size {
			t.Errorf("%d bytes were held at most, and %d are at the end: want about one object, and none", h.most, h.held)
		}
	})
}

// TestRetryAfterNonsense: a wait is bounded, and never negative.
func TestRetryAfterNonsense(t *testing.T) {
	for _, header := range []string{"-5", "99999999999999999999", "1e9", "Fri, 31 Dec 1999 23:59:59 GMT", "\u0664"} {
		inBubble(t, func(f *fake) {
			f.initial = inTurn(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", header)
				w.WriteHeader(429)
			}, stalls(markerAt(3)))
			_ = f.start(nil).end()
			began := time.Now()
			r := f.start(nil)
			r.after(maxRetryWait)
			r.wantState(3)
			if waited := time.Since(began); waited > maxRetryWait {
				t.Errorf("Retry-After %s: waited %v", header, waited)
			}
			r.stop()
		})
	}
}
