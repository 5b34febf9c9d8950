package grpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// authority issues certificates for one test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	issued := a.issue("authority", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	a.cert, a.key = issued.Leaf, issued.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue makes a certificate, signed by the authority or, for the authority's
// own, self-signed.
func (a *authority) issue(name string, adapt func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.next++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	adapt(template)
	parent, signer := a.cert, a.key
	if parent == nil {
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

func (a *authority) server() tls.Certificate {
	return a.issue("server", func(c *x509.Certificate) {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
}

func (a *authority) client() tls.Certificate {
	return a.issue("client", func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func TestTLS(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	oneWay := &tls.Config{Certificates: []tls.Certificate{ours.server()}}
	mutual := &tls.Config{
		Certificates: []tls.Certificate{ours.server()},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ours.pool(),
	}
	with := func(c ...tls.Certificate) *tls.Config { return &tls.Config{RootCAs: ours.pool(), Certificates: c} }
	tests := map[string]struct {
		server, client *tls.Config
		fails          string // a part of the error; empty: none
	}{
		"TLS":                   {oneWay, with(), ""},
		"TLS, other authority":  {oneWay, &tls.Config{RootCAs: foreign.pool()}, "certificate signed by unknown authority"},
		"TLS, other name":       {oneWay, &tls.Config{RootCAs: ours.pool(), ServerName: "backend"}, "certificate"},
		"TLS, plaintext client": {oneWay, nil, "want TLS if that is what the server speaks"},
		"plaintext, TLS client": {nil, with(), "Unavailable"},
		"mutual TLS":            {mutual, with(ours.client()), ""},
		// The error text depends on timing: TLS 1.3 clients may be done with
		// the handshake by then.
		"mutual TLS, no certificate":      {mutual, with(), "Unavailable"},
		"mutual TLS, foreign certificate": {mutual, with(foreign.client()), "Unavailable"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var options []grpc.ServerOption
			if test.server != nil {
				options = append(options, grpc.Creds(credentials.NewTLS(test.server)))
			}
			u := serveWith(t, options, sayAndEnd(nil, first()...))
			err := follows(t, Config{Address: u.address, TLS: test.client})
			if failed := err != nil; failed != (test.fails != "") || failed && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("error %v, want %q", err, test.fails)
			}
		})
	}
}
