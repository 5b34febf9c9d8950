//go:build servers

package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority issues certificates for one test.
type authority struct {
	t    *testing.T
	pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	own := a.issue("authority")
	a.cert, a.key = own.Leaf, own.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

// issue makes a certificate for this machine, with which either side can
// authenticate; the first is the authority's own.
func (a *authority) issue(name string) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.next++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// files writes a certificate, its key, and the authority's own, as a server reads them.
func (a *authority) files(c tls.Certificate) (cert, key, ca string) {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			a.t.Fatal(err)
		}
		return name
	}
	return write("cert.pem", "CERTIFICATE", c.Certificate[0]), write("key.pem", "PRIVATE KEY", der),
		write("ca.pem", "CERTIFICATE", a.cert.Raw)
}

// TestCertificateThatChanges: a member gets a certificate of an authority that is not trusted, and then
// another one of its own.
func TestCertificateThatChanges(t *testing.T) {
	t.Parallel()
	ours, foreign := newAuthority(t), newAuthority(t)
	cert, key, _ := ours.files(ours.issue("server"))
	s := startServer(t, "-cert", cert, "-key", key)
	replace := func(a *authority) {
		otherCert, otherKey, _ := a.files(a.issue("server"))
		for from, to := range map[string]string{otherCert: cert, otherKey: key} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	c := subscribe(t, newSource(t, Config{Endpoints: []string{"https://" + s.Addr()}, TLS: &tls.Config{RootCAs: ours.pool}}))
	c.awaitSync()
	replace(foreign)
	c.awaitReason("certificate signed by unknown authority")
	replace(ours)
	c.awaitSync()
	c.wantResets("initial")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ours, foreign := newAuthority(t), newAuthority(t)
	cert, key, ca := ours.files(ours.issue("server"))
	oneWay := startServer(t, "-cert", cert, "-key", key)
	mutual := startServer(t, "-cert", cert, "-key", key, "-ca", ca)
	plain := startServer(t)
	cert, key, _ = ours.files(ours.issue("etcd.internal"))
	named := startServer(t, "-cert", cert, "-key", key)
	with := func(c ...tls.Certificate) *tls.Config { return &tls.Config{RootCAs: ours.pool, Certificates: c} }
	for name, test := range map[string]struct {
		server *server
		scheme string
		client *tls.Config
		fails  string // a part of the reason; empty: none
	}{
		"TLS":                             {oneWay, "https://", with(), ""},
		"TLS without a scheme":            {oneWay, "", with(), ""},
		"the system's authorities":        {oneWay, "https://", nil, "certificate signed by unknown authority"},
		"other authority":                 {oneWay, "https://", &tls.Config{RootCAs: foreign.pool}, "certificate signed by unknown authority"},
		"other name":                      {oneWay, "https://", &tls.Config{RootCAs: ours.pool, ServerName: "etcd"}, "valid for server, not etcd"},
		"the name of the certificate":     {named, "https://", &tls.Config{RootCAs: ours.pool, ServerName: "etcd.internal"}, ""},
		"plaintext client":                {oneWay, "http://", nil, "want https:// if that is what the member speaks"},
		"TLS client":                      {plain, "https://", with(), "want http:// if the member does not speak TLS"},
		"mutual TLS":                      {mutual, "https://", with(ours.issue("gateway")), ""},
		"mutual TLS, no certificate":      {mutual, "https://", with(), "certificate"},
		"mutual TLS, foreign certificate": {mutual, "https://", with(foreign.issue("gateway")), "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			c := subscribe(t, newSource(t, Config{Endpoints: []string{test.scheme + test.server.Addr()}, TLS: test.client}))
			if test.fails != "" {
				c.awaitReason(test.fails)
				return
			}
			c.awaitSync()
		})
	}
}
