package consul

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// selfSigned makes a certificate for the loopback address, which is its own
// authority.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// TestTLS checks both directions: verifying the server, and the client's own
// certificate.
func TestTLS(t *testing.T) {
	cert, pool := selfSigned(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})))
	pbresource.RegisterResourceServiceServer(server, quiet())
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	address := listener.Addr().String()
	w := follow(t, newSource(t, Config{Address: address, TLS: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{cert},
	}}))
	w.is(stream.InSync)
	endsWith(t, Config{Address: address, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}, "certificate")
	endsWith(t, Config{Address: address, TLS: &tls.Config{RootCAs: pool}}, "consul "+address)
	endsWith(t, Config{Address: address}, "want TLS if that is what the port speaks")
}

// TestTLSOfTheHTTPAPI: as TestTLS, for the collections that are read over HTTP.
func TestTLSOfTheHTTPAPI(t *testing.T) {
	cert, pool := selfSigned(t)
	f := newFakeHTTP()
	f.said = keys(9, "a@5=1")
	server := httptest.NewUnstartedServer(f)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	address := server.Listener.Addr().String()
	config := func(c *tls.Config) Config {
		return Config{HTTPAddress: address, TLS: c, Resources: Resources{Collection: KV}, Prefix: "app/"}
	}
	s, err := NewQueried(config(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}))
	if err != nil {
		t.Fatal(err)
	}
	w := follow(t, s)
	w.is(stream.InSync)
	if r, ok := w.Snapshot().Get("a"); !ok || string(r.Value) != "1" {
		t.Errorf("it has %+v", r)
	}
	for want, c := range map[string]*tls.Config{
		"certificate":       {Certificates: []tls.Certificate{cert}}, // of an authority that is not trusted
		"consul " + address: {RootCAs: pool},
	} {
		s, err := NewQueried(config(c))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestPingsAreRareEnough: Consul ends connections that ping more often than every
// 15 seconds.
func TestPingsAreRareEnough(t *testing.T) {
	if pingAfter <= 15*time.Second {
		t.Errorf("pings after %v", pingAfter)
	}
}
