package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// newClientPair makes a certificate with a name, and its key, in PEM.
func newClientPair(t *testing.T, name string) (cert, key string) {
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
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// TestClientCertificateRotates: each connection has the certificate of its time, for every type of source
// with TLS, and the sources are the same as before: their watches are not replaced.
func TestClientCertificateRotates(t *testing.T) {
	const text = `
sources:
  a: { type: etcd, endpoints: ["a:1"], tls: { cert_file: cert, key_file: key } }
  b: { type: consul, address: "b:1", tls: { cert_file: cert, key_file: key } }
  c: { type: nats, url: "nats://c", tls: { cert_file: cert, key_file: key } }
  d: { type: grpc, address: "d:1", tls: { cert_file: cert, key_file: key } }
  e: { type: gateway, url: "https://e", tls: { cert_file: cert, key_file: key } }
  f: { type: postgres, url: "postgres://u@f/d", tls: { cert_file: cert, key_file: key } }
`
	files := map[string]string{}
	files["cert"], files["key"] = newClientPair(t, "old")
	c := withFiles(t, text, files)
	tlsOf := []*tls.Config{c.Sources[0].Etcd.TLS, c.Sources[1].Consul.TLS, c.Sources[2].NATS.TLS, c.Sources[3].GRPC.TLS, c.Sources[4].Gateway.TLS, c.Sources[5].Postgres.TLS}
	want := func(name string) {
		t.Helper()
		for i, config := range tlsOf {
			r := &tls.CertificateRequestInfo{Version: tls.VersionTLS13, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}}
			got, err := config.GetClientCertificate(r)
			if err != nil || got.Leaf.Subject.CommonName != name {
				t.Errorf("source %s: %v, %v; want %s", c.Sources[i].Name, got.Leaf, err, name)
			}
			r.AcceptableCAs = [][]byte{[]byte("another authority")}
			if got, err := config.GetClientCertificate(r); err != nil || len(got.Certificate) != 0 {
				t.Errorf("source %s: a server of another authority gets %v, %v", c.Sources[i].Name, got.Leaf, err)
			}
		}
	}
	want("old")
	cert, key := newClientPair(t, "new")
	files["cert"] = cert
	want("old") // half of it
	files["key"] = key
	want("new")
	if got := differences(c, withFiles(t, text, files)); got != "" {
		t.Errorf("with another certificate, different are %q", got)
	}
	delete(files, "key")
	want("new")
}
