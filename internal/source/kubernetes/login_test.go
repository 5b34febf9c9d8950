//go:build unix

package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	"k8s.io/client-go/rest"
)

// accepting has the fake accept one credential. It returns a function that replaces it.
func (f *fake) accepting(first string, credentialOf func(*http.Request) string) (accept func(string)) {
	var accepted atomic.Pointer[string]
	accept = func(c string) { accepted.Store(&c) }
	accept(first)
	f.authorized = func(r *http.Request) bool { return credentialOf(r) == *accepted.Load() }
	return accept
}

func bearerOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func certificateOf(r *http.Request) string {
	if len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

// with changes the configuration that the source loads.
func (f *fake) with(change func(*rest.Config)) {
	load := f.source.config.inCluster
	f.source.config.inCluster = func() (*rest.Config, error) {
		c, err := load()
		change(c)
		return c, err
	}
}

// rotates runs one watch after another, of which the second needs a credential that replace makes, and
// checks that nobody notices.
func (f *fake) rotates(replace func()) {
	f.t.Helper()
	f.source.config.watchFor = 30 * time.Second
	f.head = replies(200, listOf(8, ""))
	ended := make(chan struct{})
	f.initial = runsOut(ended, line(added, widget("a", 5)), markerAt(7), line(added, widget("b", 8)))
	f.watch = stalls(line(added, widget("c", 9)))
	r := f.start(nil)
	r.wantState(8, "a", "b")
	r.after(20 * time.Second)
	replace()
	r.running()
	r.wantState(8, "a", "b")
	close(ended)
	r.running()
	r.wantState(9, "a", "b", "c")
	r.wantResets(1)
	if n := len(r.Statuses()); n != 0 {
		f.t.Errorf("%d statuses, want none", n)
	}
	r.stop()
}

// TestTokenFileRotates: the old token is refused, and the file has a new one.
func TestTokenFileRotates(t *testing.T) {
	inBubble(t, func(f *fake) {
		token := writeFile(t, "token", "old\n")
		f.with(func(c *rest.Config) { c.BearerTokenFile = token })
		accept := f.accepting("old", bearerOf)
		f.rotates(func() {
			replaceFile(t, token, "new\n")
			accept("new")
		})
	})
}

// TestKubeconfigRotates: the token in it is another one.
func TestKubeconfigRotates(t *testing.T) {
	inBubble(t, func(f *fake) {
		token := writeFile(t, "token", "old")
		f.with(func(c *rest.Config) { c.BearerToken = readFile(t, token) })
		accept := f.accepting("old", bearerOf)
		f.rotates(func() {
			replaceFile(t, token, "new")
			accept("new")
		})
	})
}

// TestPluginIsRunAgain: the old token is refused before its end, and the plugin issues a new one.
func TestPluginIsRunAgain(t *testing.T) {
	inBubble(t, func(f *fake) {
		s := newScript(t)
		f.with(func(c *rest.Config) { c.ExecProvider = s.config() })
		s.issuesUntil("old", time.Now().Add(time.Hour))
		accept := f.accepting("old", bearerOf)
		f.rotates(func() {
			s.issuesUntil("new", time.Now().Add(time.Hour))
			accept("new")
		})
		if n := s.ran(); n != 2 {
			t.Errorf("the plugin has run %d times, want twice", n)
		}
	})
}

// TestPluginIsRunBeforeTheEnd: no request has a token that is about to end.
func TestPluginIsRunBeforeTheEnd(t *testing.T) {
	inBubble(t, func(f *fake) {
		s := newScript(t)
		f.with(func(c *rest.Config) { c.ExecProvider = s.config() })
		s.issuesUntil("old", time.Now().Add(20*time.Second))
		accept := f.accepting("old", bearerOf)
		refusals := 0
		check := f.authorized
		f.authorized = func(r *http.Request) bool {
			if !check(r) {
				refusals++
				return false
			}
			return true
		}
		f.rotates(func() {
			s.issuesUntil("new", time.Now().Add(time.Hour))
			accept("new")
		})
		if n := s.ran(); n != 2 || refusals != 0 {
			t.Errorf("the plugin has run %d times, and %d requests were refused; want twice, and none", n, refusals)
		}
	})
}

// TestPluginFailsBeforeTheEnd: what it has issued is used until it ends.
func TestPluginFailsBeforeTheEnd(t *testing.T) {
	inBubble(t, func(f *fake) {
		s := newScript(t)
		s.issuesUntil("old", time.Now().Add(20*time.Second))
		p := s.plugin()
		first, err := p.credential(f.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.write(s.answer, "")
		timer := time.NewTimer(18 * time.Second)
		<-timer.C
		for range 2 {
			if again, err := p.credential(f.t.Context()); again != first || err != nil {
				t.Fatalf("before its end: %+v, %v", again, err)
			}
		}
		if n := s.ran(); n != 2 {
			t.Errorf("the plugin has run %d times, want twice: not for each request", n)
		}
		timer.Reset(2 * time.Second)
		<-timer.C
		if again, err := p.credential(f.t.Context()); again != nil || err == nil {
			t.Errorf("after its end: %+v, %v", again, err)
		}
	})
}

// TestClientCertificateRotates: later requests are made over a connection with the new certificate,
// while the watch goes on over the old one.
func TestClientCertificateRotates(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, f *fake) (issue func(cert, key string)){
		"of a plugin": func(t *testing.T, f *fake) func(cert, key string) {
			s := newScript(t)
			f.with(func(c *rest.Config) { c.ExecProvider = s.config() })
			return func(cert, key string) {
				status, err := json.Marshal(map[string]any{"clientCertificateData": cert, "clientKeyData": key, "expirationTimestamp": time.Now().Add(20 * time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				s.issues(string(status))
			}
		},
		"in files": func(t *testing.T, f *fake) func(cert, key string) {
			certFile, keyFile := writeFile(t, "cert", ""), writeFile(t, "key", "")
			f.with(func(c *rest.Config) { c.CertFile, c.KeyFile = certFile, keyFile })
			return func(cert, key string) {
				replaceFile(t, certFile, cert)
				replaceFile(t, keyFile, key)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				issue := set(t, f)
				issue(clientCertificate(t, "old"))
				accept := f.accepting("old", certificateOf)
				f.rotates(func() {
					issue(clientCertificate(t, "new"))
					accept("new")
				})
			})
		})
	}
}

// TestCredentialIsRefusedTwice: the request is made once more, and no more.
func TestCredentialIsRefusedTwice(t *testing.T) {
	inBubble(t, func(f *fake) {
		s := newScript(t)
		s.issues(`{"token":"sEcReT-token"}`)
		f.with(func(c *rest.Config) { c.ExecProvider = s.config() })
		refusals := 0
		f.authorized = func(*http.Request) bool { refusals++; return false }
		err := f.start(nil).end()
		if err == nil || !strings.Contains(err.Error(), "want credentials that the server knows") || strings.Contains(err.Error(), "sEcReT") {
			t.Errorf("error %v", err)
		}
		if refusals != 2 || s.ran() != 1 {
			t.Errorf("%d requests and %d runs, want two and one", refusals, s.ran())
		}
		timer := time.NewTimer(pluginPause)
		<-timer.C
		_ = f.start(nil).end()
		if refusals != 4 || s.ran() != 2 {
			t.Errorf("later, %d requests and %d runs, want four and two", refusals, s.ran())
		}
	})
}

// TestWriteWithARotatedToken is made once the new token is known, and only once.
func TestWriteWithARotatedToken(t *testing.T) {
	inBubble(t, func(f *fake) {
		token := writeFile(t, "token", "old")
		f.with(func(c *rest.Config) { c.BearerTokenFile = token })
		accept := f.accepting("old", bearerOf)
		writes := 0
		f.list = func(w http.ResponseWriter, r *http.Request) {
			writes++
			replies(201, widget("a", 5))(w, r)
		}
		w, err := NewWriter(f.source.config, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for i, next := range []string{"old", "new"} {
			replaceFile(t, token, next)
			accept(next)
			if _, _, err := w.Put(f.t.Context(), stream.PutRequest{Key: "a", Value: []byte(widget("a", 5))}); err != nil || writes != i+1 {
				t.Errorf("with the token %s: error %v after %d writes", next, err, writes)
			}
		}
	})
}

func replaceFile(t testing.TB, path, content string) {
	t.Helper()
	(&script{t: t}).write(path, content)
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	return (&script{t: t}).read(path)
}

// clientCertificate makes a certificate for a name, and its key, in PEM.
func clientCertificate(t testing.TB, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}
