//go:build servers

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// known is an authority that browsers and systems trust.
var known = pkix.Name{CommonName: "ISRG Root X1", Organization: []string{"Internet Security Research Group"}, Country: []string{"US"}}

// checkAuthorities: in the files of the image there is no authority, and the program knows some
// nevertheless. It refuses the certificate of a server that pretends to be signed by one of them,
// and says which authority has not signed it; one that it does not know, it could not name.
func checkAuthorities(t *testing.T, root, program string) {
	t.Helper()
	for authority, want := range map[string]string{
		known.CommonName: `candidate authority certificate "` + known.CommonName + `"`,
		"Nobody's Root":  "certificate signed by unknown authority",
	} {
		name := known
		name.CommonName = authority
		out := listFrom(t, root, program, pretender(t, name))
		if !strings.Contains(out, want) {
			t.Errorf("a server that pretends to be signed by %s: %q, want %q", authority, out, want)
		}
		if authority != known.CommonName && strings.Contains(out, "candidate authority") {
			t.Errorf("%s: %q, want no candidate", authority, out)
		}
	}
}

// listFrom runs a program in an empty root, where it may have one, and returns its complaint.
func listFrom(t *testing.T, root, program, server string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, "list", "--server", server)
	c.Dir, c.Env = "/", []string{"SSL_CERT_FILE=/does/not/exist", "SSL_CERT_DIR=/does/not/exist"}
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	} else {
		c.Path = root + program
	}
	out, err := c.CombinedOutput()
	if err == nil {
		t.Errorf("%s: %q, want that it is refused", server, out)
	}
	return string(out)
}

// pretender starts a server whose certificate names an issuer that has not signed it.
func pretender(t *testing.T, issuer pkix.Name) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, &x509.Certificate{Subject: issuer}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
