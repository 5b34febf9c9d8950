package credential

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = access.SealKey{1, 2, 3}

// rig has an authenticator that accepts everything.
type rig struct {
	*Authenticator
	provider *accesstest.Provider
	ci       string // a static token
}

func newRig(t testing.TB, change func(*Config)) rig {
	t.Helper()
	ci, line, err := access.NewToken("ci", []string{"robots"})
	if err != nil {
		t.Fatal(err)
	}
	p := accesstest.NewProvider(t)
	cfg := Config{Keys: []access.SealKey{testKey}, Tokens: tokens(t, line), Issuers: []jwt.Issuer{p.Issuer()}, Certificates: SubjectURI}
	if change != nil {
		change(&cfg)
	}
	return rig{newAuthenticator(t, cfg), p, ci}
}

func newAuthenticator(t testing.TB, cfg Config) *Authenticator {
	t.Helper()
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tokens(t testing.TB, lines ...string) *access.TokenTable {
	t.Helper()
	table, err := access.ParseTokens([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// request returns a request from this machine without TLS, with headers as pairs.
func newRequest(target string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, http.NoBody)
	r.RemoteAddr = "127.0.0.1:4711"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func withBearer(text string) *http.Request {
	return newRequest("/v1/events", "Authorization", "Bearer "+text)
}

// from changes the address that a request comes from.
func from(r *http.Request, address string) *http.Request {
	r.RemoteAddr = address
	return r
}

// withCertificate returns a request over TLS, with a verified certificate.
func withCertificate(r *http.Request, leaf *x509.Certificate) *http.Request {
	ca := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf, ca}}}
	return r
}

func certificate(t testing.TB, uris ...string) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "root"}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.example.com"}}
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	return c
}

// who returns who makes a request, as "mechanism name", or why nobody does.
func (r rig) who(t testing.TB, request *http.Request) string {
	t.Helper()
	id, err := r.Identify(request)
	if err != nil {
		return string(refused(t, err).Reason)
	}
	return strings.TrimSpace(id.Mechanism + " " + id.Name)
}

func refused(t testing.TB, err error) *access.Refusal {
	t.Helper()
	var r *access.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("%T: %v", err, err)
	}
	return r
}

// session returns the cookie of a session of a token.
func (r rig) session(t testing.TB, request *http.Request) *http.Cookie {
	t.Helper()
	id, err := r.Identify(request)
	if err != nil {
		t.Fatal(err)
	}
	login, err := r.NewSession(request, id)
	if err != nil {
		t.Fatal(err)
	}
	return login.Cookie
}

func (r rig) ticket(t testing.TB, request *http.Request, watches ...string) string {
	t.Helper()
	id, err := r.Identify(request)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := r.NewTicket(id, watches)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
