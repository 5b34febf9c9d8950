package config

import (
	"crypto/tls"
	"crypto/x509"
)

// namedFile is a file that the configuration names, and its content.
type namedFile struct {
	value
	data []byte
}

func (f *namedFile) read(d *decoder, v value, _ key) {
	f.value = v
	if name, ok := d.textOf(v, text{want: wantFile, valid: notEmpty}); ok {
		f.data = d.content(name)
	}
}

// serverTLS is the section "tls" of a listener.
type serverTLS struct {
	Cert namedFile `yaml:"cert_file"`
	Key  namedFile `yaml:"key_file"`
}

// clientTLS is the section "tls" of a source: the authorities that are trusted,
// and the client's own certificate if there is one.
type clientTLS struct {
	CA         namedFile `yaml:"ca_file"`
	Cert       namedFile `yaml:"cert_file"`
	Key        namedFile `yaml:"key_file"`
	ServerName string    `yaml:"server_name"`
}

func (d *decoder) readTLS(v value, server bool) *tls.Config {
	if server {
		return d.readServerTLS(v)
	}
	return d.readClientTLS(v)
}

func (d *decoder) readServerTLS(v value) *tls.Config {
	var s serverTLS
	d.section(v, &s)
	if s.Cert.node == nil && s.Key.node == nil {
		d.errorf(v, "cert_file and key_file are missing")
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: d.keyPair(s.Cert, s.Key)}
}

func (d *decoder) readClientTLS(v value) *tls.Config {
	var c clientTLS
	d.section(v, &c)
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, Certificates: d.keyPair(c.Cert, c.Key)}
	if c.CA.data != nil {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(c.CA.data) {
			d.errorf(c.CA.value, "the file holds no certificate in PEM")
		}
	}
	return out
}

// keyPair loads the certificate; nil if there is none, or an error was added.
func (d *decoder) keyPair(cert, key namedFile) []tls.Certificate {
	switch {
	case cert.node == nil && key.node == nil:
		return nil
	case cert.node == nil:
		d.errorf(key.value, "cert_file is missing beside it")
		return nil
	case key.node == nil:
		d.errorf(cert.value, "key_file is missing beside it")
		return nil
	case cert.data == nil || key.data == nil:
		return nil
	}
	pair, err := tls.X509KeyPair(cert.data, key.data)
	if err != nil {
		d.errorf(cert.value, "not a certificate with its key: %v", err)
		return nil
	}
	return []tls.Certificate{pair}
}
