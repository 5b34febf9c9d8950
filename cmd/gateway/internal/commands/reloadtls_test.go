package commands

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// trusting returns the configuration of a client that trusts authorities, and has a
// certificate of its own if own is not empty.
func trusting(t *testing.T, own pair, authorities ...pair) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "gateway.test"}
	for _, a := range authorities {
		c.RootCAs.AppendCertsFromPEM([]byte(a.cert))
	}
	if own.cert != "" {
		one, err := tls.X509KeyPair([]byte(own.cert), []byte(own.key))
		if err != nil {
			t.Fatal(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &one, nil }
	}
	return c
}

// handshake connects and returns the serial number of the server's certificate, and whether
// the server took the connection and asked for a certificate.
func handshake(t *testing.T, address string, c *tls.Config) (serial int64, taken, asked bool) {
	t.Helper()
	c = c.Clone()
	if own := c.GetClientCertificate; own != nil {
		c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return own(r)
		}
	}
	var d tls.Dialer
	d.Config = c
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// In TLS 1.3 the server looks at the client's certificate after the client is done.
	fmt.Fprint(conn, "GET /healthz HTTP/1.0\r\n\r\n")
	_, err = conn.Read(make([]byte, 1))
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(), err == nil, asked
}

// Certificates are replaced under a listener: new connections get the new one, and those that
// are open go on. A pair of which only one half is written is reported, and the old one stays.
func TestReloadOfCertificates(t *testing.T) {
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	first, second := newPair(t, 1), newPair(t, 2)
	rewrite(t, name("cert.pem"), first.cert)
	rewrite(t, name("key.pem"), first.key)
	rewrite(t, name("gateway.yaml"), `
http: { tls: { cert_file: cert.pem, key_file: key.pem } }
grpc: { tls: { cert_file: cert.pem, key_file: key.pem } }
operations: { tls: { cert_file: cert.pem, key_file: key.pem } }
sources: { local: { type: store } }
watches: { notes: { source: local } }
`)
	g := serve(t, "--config", name("gateway.yaml"))
	client := trusting(t, pair{}, first, second)
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	stream, err := (&http.Client{Transport: transport}).Get("https://" + g.http + "/v1/watches/notes/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.ProtoMajor != 2 {
		t.Errorf("HTTP/%d, want 2", stream.ProtoMajor)
	}
	want := func(serial int64) {
		t.Helper()
		for _, address := range []string{g.http, g.operations} {
			if got, _, _ := handshake(t, address, client); got != serial {
				t.Errorf("%s has certificate %d, want %d", address, got, serial)
			}
		}
		h2 := client.Clone()
		h2.NextProtos = []string{"h2"}
		if got, _, _ := handshake(t, g.grpc, h2); got != serial {
			t.Errorf("gRPC has certificate %d, want %d", got, serial)
		}
		_, metrics := fetch(t, transport, "GET", "https://"+g.operations+"/metrics", "")
		for _, listener := range []string{"http", "grpc", "operations"} {
			found := regexp.MustCompile(`certificate_expiry_timestamp_seconds\{listener="` + listener + `"\} (\S+)`).FindStringSubmatch(metrics)
			if found == nil {
				t.Fatalf("the metrics do not say when the certificate of %s expires", listener)
			}
			expiry, err := strconv.ParseFloat(found[1], 64)
			if hours := math.Round(time.Until(time.Unix(int64(expiry), 0)).Hours()); err != nil || hours != float64(serial) {
				t.Errorf("the metrics say that certificate %d of %s expires in %v hours (%v)", serial, listener, hours, err)
			}
		}
	}
	want(1)
	rewrite(t, name("cert.pem"), second.cert)
	g.logs.await(t, "http.tls.cert_file: not a certificate with its key")
	want(1)
	rewrite(t, name("key.pem"), second.key)
	g.logs.await(t, `"msg":"configuration reloaded"`)
	want(2)
	request, err := http.NewRequestWithContext(t.Context(), "PUT", "https://"+g.http+"/v1/watches/notes/resources/a", strings.NewReader("1"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request) // over the connection of the stream
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	text := ""
	for buffer := make([]byte, 4096); !strings.Contains(text, `"key":"a"`); {
		n, err := stream.Body.Read(buffer)
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		text += string(buffer[:n])
	}
}

// With client_ca_file a certificate is asked for, and verified if there is one. The
// authorities can be replaced.
func TestReloadOfClientAuthorities(t *testing.T) {
	dir := t.TempDir()
	server, one, other := newPair(t, 1), newPair(t, 2), newPair(t, 3)
	for file, content := range map[string]string{
		"cert.pem": server.cert, "key.pem": server.key, "ca.pem": one.cert, "gateway.yaml": `
http: { tls: { cert_file: cert.pem, key_file: key.pem, client_ca_file: ca.pem } }
sources: { local: { type: store } }
watches: { notes: { source: local } }
`} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := serve(t, "--config", filepath.Join(dir, "gateway.yaml"))
	want := func(who string, own pair, want bool) {
		t.Helper()
		_, taken, asked := handshake(t, g.http, trusting(t, own, server))
		if taken != want || !asked && own.cert != "" {
			t.Errorf("%s: taken %v, asked %v, want %v and true", who, taken, asked, want)
		}
	}
	want("no certificate", pair{}, true)
	want("one", one, true)
	want("other", other, false)
	rewrite(t, filepath.Join(dir, "ca.pem"), other.cert)
	g.logs.await(t, `"msg":"configuration reloaded"`)
	want("no certificate", pair{}, true)
	want("one", one, false)
	want("other", other, true)
}
