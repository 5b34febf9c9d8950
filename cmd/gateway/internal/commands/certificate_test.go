package commands

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// pair is a self-signed certificate, with its key, in PEM.
type pair struct{ cert, key string }

// newPair returns a certificate for gateway.test, which is also an authority for itself.
func newPair(t *testing.T, serial int64) pair {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"gateway.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Duration(serial) * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}
}

// certificate makes a self-signed certificate for gateway.test, and returns the names of its
// files, and the configuration with which a client trusts it.
func certificate(t *testing.T) (cert, key string, client *tls.Config) {
	t.Helper()
	p := newPair(t, 1)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(p.cert))
	return file(t, "cert.pem", p.cert), file(t, "key.pem", p.key), &tls.Config{RootCAs: roots, ServerName: "gateway.test"}
}
