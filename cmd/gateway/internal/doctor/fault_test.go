package doctor

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// faults are ways that are wrong in one respect each, and the problem that is to be found.
var faults = map[string]struct {
	make  func(*way)
	check Check
	text  string
}{
	"nobody listens": {func(w *way) { w.options.URL = "https://elsewhere.example.com" }, Connection, "connection refused"},
	"a redirect": {front(func(http.Handler) http.Handler {
		return http.RedirectHandler("https://www.example.com/", http.StatusFound)
	}), Connection, `redirect to "https://www.example.com/"`},
	"no replica": {func(w *way) { w.replicas[0].down = true }, Gateway, "502 Bad Gateway"},
	"another server": {front(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Welcome") })
	}), Gateway, "200 OK of the type text/html"},
	"no streams":      {streamsOnly(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { http.NotFound(w, nil) }), Gateway, "a stream does not begin: 404"},
	"no such watch":   {func(w *way) { w.options.Watch = "nosuch" }, Gateway, `no watch "nosuch"`},
	"an unknown host": {func(w *way) { w.config.Hosts = nil }, Host, site},
	"credentials are missing": {front(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusUnauthorized) })
	}), Credentials, "401"},

	"an expired certificate":         {certificate(certified{lasts: -time.Hour}), Certificate, "expired"},
	"a certificate that ends soon":   {certificate(certified{lasts: 13 * 24 * time.Hour}), Certificate, "ends on 2000-01-14"},
	"a certificate of another host":  {certificate(certified{name: "other.example.com"}), Certificate, "other names"},
	"an unknown authority":           {certificate(certified{unknown: true}), Certificate, `it was issued by "Example Root"`},
	"an incomplete chain":            {certificate(certified{between: true}), Certificate, `it was issued by "Example Between"`},
	"a certificate signed by itself": {certificate(certified{selfMade: true}), Certificate, "signed by itself"},

	"no HTTP/2": {func(w *way) { w.tls.NextProtos = []string{"http/1.1"} }, HTTP, "at most six connections"},
	"no TLS":    {func(w *way) { w.tls, w.options.URL = nil, "http://"+site }, HTTP, "which everybody on the way can read"},

	"a clock ahead":  {header(func(h http.Header) { h.Set("Date", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)) }), Clock, "ahead of this one"},
	"a clock behind": {header(func(h http.Header) { h.Set("Date", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat)) }), Clock, "behind this one"},
	"an upstream ahead": {lists(func(body string) string {
		return strings.ReplaceAll(body, `"since":"2000-01-01T00:00:00`, `"since":"2000-01-01T00:01:00`)
	}), Clock, `watch "orders" has a time`},

	"a proxy that is not trusted":    {func(w *way) { w.config.TrustedProxies = nil }, Address, "all clients of the proxy at 10.0.0.1:"},
	"a proxy that names nobody":      {anonymous, Address, "the proxy at 10.0.0.1:"},
	"an unknown proxy without names": {func(w *way) { anonymous(w); w.config.TrustedProxies = nil }, Address, "says nothing about its clients"},
	"a second proxy in front": {func(w *way) {
		before := w.proxy.Rewrite
		w.proxy.Rewrite = func(r *httputil.ProxyRequest) {
			before(r)
			r.Out.Header.Set("X-Forwarded-For", "198.51.100.7, 172.16.0.9")
		}
	}, Address, "172.16.0.9, which is the address of another proxy"},

	"a foreign origin":          {func(w *way) { w.config.AllowedOrigins = nil }, CORS, "there is no Access-Control-Allow-Origin"},
	"origins twice":             {header(func(h http.Header) { h.Add("Access-Control-Allow-Origin", pages) }), CORS, "more than once"},
	"all origins":               {header(func(h http.Header) { h.Set("Access-Control-Allow-Origin", "*") }), CORS, "is *"},
	"no credentials from pages": {header(func(h http.Header) { h.Del("Access-Control-Allow-Credentials") }), CORS, "Credentials is missing"},
	"no preflight": {front(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodOptions {
				http.Error(w, "", http.StatusMethodNotAllowed)
				return
			}
			next.ServeHTTP(w, r)
		})
	}), CORS, "OPTIONS is answered with 405"},
	"a preflight without headers": {header(func(h http.Header) { h.Del("Access-Control-Allow-Headers") }), CORS, "does not allow the headers"},

	"replicas of their own":      {func(w *way) { w.replicas = []replica{{epoch: "e1", revision: 2}, {epoch: "e2", revision: 2}} }, Replicas, `different epochs of watch "orders"`},
	"one replica of two is down": {func(w *way) { w.replicas = append(w.replicas, replica{down: true}); w.turn.Store(1) }, Replicas, "one of 8 connections failed"},
	"a replica that is behind": {func(w *way) {
		w.replicas = []replica{{epoch: "e1", revision: 2}, {epoch: "e1", revision: 9}}
		w.turn.Store(0)
	}, Resume, "another replica is behind"},
	"no Last-Event-ID": {func(w *way) {
		before := w.proxy.Rewrite
		w.proxy.Rewrite = func(r *httputil.ProxyRequest) { before(r); r.Out.Header.Del("Last-Event-ID") }
	}, Resume, "Last-Event-ID does not reach"},

	"a proxy that buffers": {streamsOnly(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(struct{ http.ResponseWriter }{w}, r) // without Flush
	}), Buffering, "no byte of a stream came within 10s"},
	"a proxy that buffers bodies": {streamsOnly(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&headerFirst{ResponseWriter: w}, r)
	}), Buffering, "the header of a stream came after"},
	"a proxy that collects": {bodies(func(r *http.Response) io.ReadCloser { return &slowBody{r.Body, r.Request.Context()} }), Buffering, "hello came only after 3s"},

	"a proxy that drops a header it does not know": {header(func(h http.Header) { h.Del("Incremental") }), Incremental, "arrives without Incremental"},

	"a proxy that compresses":           {streamsOnly(zipped(true)), Compression, "with gzip"},
	"a proxy that compresses and waits": {streamsOnly(zipped(false)), Compression, "a compressed stream is held back"},
	"another coding": {streamsOnly(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "br") {
			r.Header.Del("Accept-Encoding")
			w.Header().Set("Content-Encoding", "br")
		}
		next.ServeHTTP(w, r)
	}), Compression, `with "br"`},
	"a coding that nobody asked for": {streamsOnly(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Header.Del("Accept-Encoding")
		w.Header().Set("Content-Encoding", "br")
		next.ServeHTTP(w, r)
	}), Compression, "has not asked for it"},

	"no heartbeats":                   {bodies(func(r *http.Response) io.ReadCloser { return &mute{r.Body} }), Heartbeats, "no heartbeat came within 37.5s"},
	"a short idle time-out":           {func(w *way) { w.idle(8 * time.Second) }, Idle, "a stream was cut off after 8s of silence"},
	"an idle time-out for long polls": {func(w *way) { w.idle(20 * time.Second) }, Idle, "was cut off after 20s"},
	"a limit for answers": {streamsOnly(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	}), Duration, "after 20s, although heartbeats came"},

	"sticky sessions":             {header(func(h http.Header) { h.Add("Set-Cookie", "route=secret-1; Path=/; Secure") }), Cookies, "a proxy sets cookies: route"},
	"sticky sessions in the open": {header(func(h http.Header) { h.Add("Set-Cookie", "route=secret-1; Path=/") }), Cookies, "without Secure: route"},
}

// TestEachFaultIsFound checks that each fault is found, and no other.
func TestEachFaultIsFound(t *testing.T) {
	seen := map[Check]bool{}
	for name, f := range faults {
		seen[f.check] = true
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWay(t)
				f.make(w)
				w.serve()
				for _, found := range w.wantProblem(f.check, f.text) {
					if strings.Contains(found.Found, "secret-1") {
						t.Errorf("%s has the value of a cookie", found.Found)
					}
				}
			})
		})
	}
	for _, c := range Checks() {
		if !seen[c] && c != State { // see TestState
			t.Errorf("no fault for %s", c)
		}
	}
}

// TestEveryCheckIsDescribed checks that the page for users has each check.
func TestEveryCheckIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Checks() {
		if !bytes.Contains(page, []byte("| `"+string(c)+"` |")) {
			t.Errorf("docs/doctor.md has no row of %s", c)
		}
	}
}

// front puts a handler in front of the proxy.
func front(with func(http.Handler) http.Handler) func(*way) {
	return func(w *way) { w.inFront = with }
}

// streamsOnly handles streams in another way, and nothing else.
func streamsOnly(serve func(http.ResponseWriter, *http.Request, http.Handler)) func(*way) {
	return front(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("until") == "" && r.Header.Get("Origin") == "" {
				serve(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
}

// header changes the header of each answer.
func header(change func(http.Header)) func(*way) {
	return func(w *way) {
		w.proxy.ModifyResponse = func(r *http.Response) error {
			change(r.Header)
			return nil
		}
	}
}

// bodies changes the bodies of streams that do not end.
func bodies(change func(*http.Response) io.ReadCloser) func(*way) {
	return func(w *way) {
		w.proxy.ModifyResponse = func(r *http.Response) error {
			if isStream(r) {
				r.Body = change(r)
			}
			return nil
		}
	}
}

func isStream(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") && r.Request.URL.Query().Get("until") == ""
}

// lists changes the lists of watches.
func lists(change func(string) string) func(*way) {
	return func(w *way) {
		w.proxy.ModifyResponse = func(r *http.Response) error {
			if r.Request.URL.Path != listPath {
				return nil
			}
			text, err := io.ReadAll(r.Body)
			changed := change(string(text))
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(changed)), int64(len(changed))
			return err
		}
	}
}

func certificate(c certified) func(*way) {
	return func(w *way) { w.tls.Certificates = []tls.Certificate{w.certificate(c)} }
}

// anonymous makes the proxy say nothing about its client.
func anonymous(w *way) {
	before := w.proxy.Rewrite
	w.proxy.Rewrite = func(r *httputil.ProxyRequest) {
		before(r)
		for name := range r.Out.Header {
			if strings.HasPrefix(name, "X-Forwarded-") {
				r.Out.Header.Del(name)
			}
		}
	}
}

// idle ends answers that are silent for a time.
func (w *way) idle(after time.Duration) {
	w.proxy.Transport.(*http.Transport).ResponseHeaderTimeout = after
	w.proxy.ModifyResponse = func(r *http.Response) error {
		b := r.Body
		r.Body = &impatient{ReadCloser: b, after: after, timer: time.AfterFunc(after, func() { b.Close() })}
		return nil
	}
}

// impatient is a body that is closed when it is silent.
type impatient struct {
	io.ReadCloser
	after time.Duration
	timer *time.Timer
}

// Read implements io.Reader.
func (b *impatient) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.timer.Reset(b.after)
	return n, err
}

// Close implements io.Closer.
func (b *impatient) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}

// mute is a body without comments.
type mute struct{ io.ReadCloser }

// Read implements io.Reader.
func (b *mute) Read(p []byte) (int, error) {
	for {
		n, err := b.ReadCloser.Read(p)
		if err != nil || !bytes.HasPrefix(p[:n], []byte(":")) {
			return n, err
		}
	}
}

// slowBody is a body that collects bytes for some time.
type slowBody struct {
	io.ReadCloser
	ctx context.Context // of the request
}

// Read implements io.Reader.
func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-time.After(3 * time.Second):
	case <-b.ctx.Done():
	}
	return n, err
}

// headerFirst sends the header at once, and the body when it ends.
type headerFirst struct {
	http.ResponseWriter
}

// WriteHeader implements http.ResponseWriter.
func (w *headerFirst) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	w.ResponseWriter.(http.Flusher).Flush()
}

// zipped compresses streams, as proxies do that do not leave it to the gateway.
func zipped(flush bool) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.OS = 3 // as zlib
			defer z.Close()
			w = &zipper{ResponseWriter: w, z: z, flush: flush}
		}
		r.Header.Del("Accept-Encoding")
		next.ServeHTTP(w, r)
	}
}

type zipper struct {
	http.ResponseWriter
	z     *gzip.Writer
	flush bool
}

// Write implements http.ResponseWriter.
func (w *zipper) Write(p []byte) (int, error) {
	n, err := w.z.Write(p)
	if w.flush {
		_ = w.z.Flush()
		w.ResponseWriter.(http.Flusher).Flush()
	}
	return n, err
}
