package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"path/filepath"
)

// namedFile is a file that the configuration names, and its content.
type namedFile struct {
	value
	data []byte
}

// fileNamed reads the file that a value names, relative to the configuration.
func (d *decoder) fileNamed(into *namedFile) field {
	return func(v value) {
		into.value = v
		written, ok := d.text(v, "the name of a file", nil)
		if !ok {
			return
		}
		name, where := written.expanded, ""
		if name == "" {
			d.wrong(written, "the name of a file")
			return
		}
		if !filepath.IsAbs(name) {
			name, where = filepath.Join(d.dir, name), ", looked for in "+d.dir
		}
		data, err := d.env.ReadFile(name)
		if err != nil {
			d.errorf(v, "%q cannot be read: %v%s", written.written, reason(err), where)
			return
		}
		if len(data) == 0 {
			d.errorf(v, "the file is empty")
			return
		}
		into.data = data
	}
}

// reason is the error without the name of the file, which may come from the
// environment.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// serverTLS reads a certificate and its key.
func (d *decoder) serverTLS(into **tls.Config) field {
	return func(v value) {
		var cert, key namedFile
		d.object(v, map[string]field{"cert_file": d.fileNamed(&cert), "key_file": d.fileNamed(&key)})
		if cert.node == nil && key.node == nil {
			d.errorf(v, "cert_file and key_file are missing")
			return
		}
		*into = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: d.keyPair(cert, key)}
	}
}

// clientTLS reads the trusted authorities, and the client's own certificate if
// there is one.
func (d *decoder) clientTLS(into **tls.Config) field {
	return func(v value) {
		c := &tls.Config{MinVersion: tls.VersionTLS12}
		var ca, cert, key namedFile
		d.object(v, map[string]field{
			"ca_file": d.fileNamed(&ca), "cert_file": d.fileNamed(&cert), "key_file": d.fileNamed(&key),
			"server_name": d.str(&c.ServerName),
		})
		if ca.data != nil {
			c.RootCAs = x509.NewCertPool()
			if !c.RootCAs.AppendCertsFromPEM(ca.data) {
				d.errorf(ca.value, "the file holds no certificate in PEM")
			}
		}
		c.Certificates = d.keyPair(cert, key)
		*into = c
	}
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
