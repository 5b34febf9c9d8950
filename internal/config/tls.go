package config

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// namedFile is a file that the configuration names, and its content.
type namedFile struct {
	decode.Value
	data []byte
}

func (f *namedFile) read(d *decoder, v decode.Value, _ decode.Key) {
	f.Value = v
	if name, ok := d.TextOf(v, decode.FileName); ok {
		f.data = d.Content(name)
		d.Use(f.data)
	}
}

// serverTLS is the section "tls" of a listener: its certificate, and the authorities that
// certificates of clients must come from, which are then asked for but not required.
type serverTLS struct {
	Cert     namedFile `yaml:"cert_file"`
	Key      namedFile `yaml:"key_file"`
	ClientCA namedFile `yaml:"client_ca_file"`
}

// clientTLS is the section "tls" of a source: the authorities that are trusted,
// and the client's own certificate if there is one.
type clientTLS struct {
	CA         namedFile `yaml:"ca_file"`
	Cert       namedFile `yaml:"cert_file"`
	Key        namedFile `yaml:"key_file"`
	ServerName string    `yaml:"server_name"`
}

func (d *decoder) readTLS(v decode.Value, server bool) *tls.Config {
	if server {
		return d.readServerTLS(v)
	}
	return d.readClientTLS(v)
}

func (d *decoder) readServerTLS(v decode.Value) *tls.Config {
	var s serverTLS
	d.Section(v, &s)
	if s.Cert.Node == nil && s.Key.Node == nil {
		d.Errorf(v, "cert_file and key_file are missing")
		return nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: d.keyPair(s.Cert, s.Key)}
	if out.ClientCAs = d.pool(s.ClientCA); out.ClientCAs != nil {
		out.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return out
}

func (d *decoder) readClientTLS(v decode.Value) *tls.Config {
	var c clientTLS
	d.Section(v, &c)
	d.Use([]byte(c.ServerName))
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, RootCAs: d.pool(c.CA), Certificates: d.keyPair(c.Cert, c.Key)}
}

// pool returns the authorities in a file; nil if there is none, or an error was added.
func (d *decoder) pool(ca namedFile) *x509.CertPool {
	if ca.data == nil {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.data) {
		d.Errorf(ca.Value, "the file holds no certificate in PEM")
	}
	return pool
}

// keyPair loads the certificate; nil if there is none, or an error was added.
func (d *decoder) keyPair(cert, key namedFile) []tls.Certificate {
	switch {
	case cert.Node == nil && key.Node == nil:
		return nil
	case cert.Node == nil:
		d.Errorf(key.Value, "cert_file is missing beside it")
		return nil
	case key.Node == nil:
		d.Errorf(cert.Value, "key_file is missing beside it")
		return nil
	case cert.data == nil || key.data == nil:
		return nil
	}
	pair, err := tls.X509KeyPair(cert.data, key.data)
	if err != nil {
		d.Errorf(cert.Value, "not a certificate with its key: %v", err)
		return nil
	}
	return []tls.Certificate{pair}
}
