package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// files are the names of files with certificates; "": none.
type files struct{ ca, cert, key string }

// config returns how TLS is made with a server; nil: as the system says. The client
// certificate is read again for each connection, so that it may be replaced.
func (f files) config(server string) (*tls.Config, error) {
	switch {
	case f == files{}:
		return nil, nil
	case !strings.HasPrefix(server, "https:"):
		return nil, fmt.Errorf("server %q: certificates are for TLS, want a URL that begins with https", server)
	case (f.cert == "") != (f.key == ""):
		return nil, errors.New("want --cert-file and --key-file together, or neither")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		pool, err := authorities(f.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if f.cert == "" {
		return c, nil
	}
	if _, err := f.pair(nil); err != nil {
		return nil, err
	}
	c.GetClientCertificate = f.pair
	return c, nil
}

// authorities reads the certificates of a file in PEM.
func authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the CA file %s has no certificate: want PEM", file)
	}
	return pool, nil
}

// pair reads the client certificate and its key.
func (f files) pair(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("the client certificate: %w", err)
	}
	return &pair, nil
}
