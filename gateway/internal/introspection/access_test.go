package introspection

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// certificate returns a certificate for names and 127.0.0.1 that is its own authority.
func certificate(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pool
}

// secure starts a server with TLS, and returns its port with the colon.
func secure(t *testing.T, c *tls.Config) string {
	t.Helper()
	server := httptest.NewUnstartedServer(says(sane))
	server.TLS, server.Config.ErrorLog = c, log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL[strings.LastIndexByte(server.URL, ':'):]
}

// askOne asks one address.
func askOne(t *testing.T, address string, a SiblingAccess) Sibling {
	t.Helper()
	all := asked(t, NewSiblings("a", []string{address}, a, names{[]netip.Addr{netip.MustParseAddr("127.0.0.1")}}))
	if len(all) != 1 {
		t.Fatalf("%d siblings", len(all))
	}
	return all[0]
}

// TestPrivateAuthority: a sibling with a certificate of a private authority is believed if that
// authority is trusted and the certificate is for the host, or the name that stands for it.
func TestPrivateAuthority(t *testing.T) {
	byIP, ipRoots := certificate(t)
	byDNS, dnsRoots := certificate(t, "siblings")
	atIP := secure(t, &tls.Config{Certificates: []tls.Certificate{byIP}})
	atDNS := secure(t, &tls.Config{Certificates: []tls.Certificate{byDNS}})
	for name, c := range map[string]struct {
		address string
		tls     *tls.Config
		wrong   string
	}{
		"trusted":                   {"https://127.0.0.1" + atIP, &tls.Config{RootCAs: ipRoots}, ""},
		"not trusted":               {"https://127.0.0.1" + atIP, nil, "certificate is not trusted"},
		"another authority":         {"https://127.0.0.1" + atIP, &tls.Config{RootCAs: dnsRoots}, "certificate is not trusted"},
		"another name":              {"https://127.0.0.1" + atDNS, &tls.Config{RootCAs: dnsRoots}, "certificate is not trusted"},
		"a given name":              {"https://127.0.0.1" + atDNS, &tls.Config{RootCAs: dnsRoots, ServerName: "siblings"}, ""},
		"a name for many":           {"dns+https://siblings" + atDNS, &tls.Config{RootCAs: dnsRoots}, ""},
		"a name for many, with IPs": {"dns+https://siblings" + atIP, &tls.Config{RootCAs: ipRoots}, "certificate is not trusted"},
		"plain text":                {"http://127.0.0.1" + atIP, &tls.Config{RootCAs: ipRoots}, "want an address that begins with https"},
	} {
		t.Run(name, func(t *testing.T) {
			s := askOne(t, c.address, SiblingAccess{TLS: c.tls})
			if c.wrong == "" && (s.Error != "" || s.Instance == nil) || c.wrong != "" && !strings.Contains(s.Error, c.wrong) {
				t.Errorf("want %q: %q", c.wrong, s.Error)
			}
		})
	}
}

// TestClientCertificate: a sibling that asks for a certificate gets that of this replica.
func TestClientCertificate(t *testing.T) {
	server, roots := certificate(t)
	own, authority := certificate(t, "replica")
	port := secure(t, &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: authority, ClientAuth: tls.RequireAndVerifyClientCert})
	if s := askOne(t, "https://127.0.0.1"+port, SiblingAccess{TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}}); s.Error != "" || s.Instance == nil {
		t.Errorf("with a certificate: %q", s.Error)
	}
	if s := askOne(t, "https://127.0.0.1"+port, SiblingAccess{TLS: &tls.Config{RootCAs: roots}}); s.Error == "" || s.Instance != nil {
		t.Error("without a certificate: no error")
	}
}

// TestToken: a token is sent to the addresses, not to where a redirect leads, and no error has it.
func TestToken(t *testing.T) {
	const token = "s3cret"
	elsewhere := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked", r.URL) })
	asks := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		says(sane)(w, r)
	}
	if s := askOne(t, serve(t, asks), SiblingAccess{Token: token}); s.Error != "" || s.Instance == nil {
		t.Errorf("with the token: %q", s.Error)
	}
	redirects := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	}
	for name, c := range map[string]struct{ address, token string }{
		"another token": {serve(t, asks), "another"}, "no line": {serve(t, asks), token + "\x01"},
		"a redirect": {serve(t, redirects), token}, "down": {"http://127.0.0.1:1", token},
	} {
		if s := askOne(t, c.address, SiblingAccess{Token: c.token}); s.Error == "" || strings.Contains(s.Error, c.token) {
			t.Errorf("%s: %q", name, s.Error)
		}
	}
}
