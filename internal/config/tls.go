package config

import (
	"crypto/tls"
	"crypto/x509"
	"sync"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// namedFile is a file that the configuration names, and its content.
type namedFile struct {
	decode.Value
	name string // resolved
	data []byte
}

func (f *namedFile) read(d *decoder, v decode.Value, _ decode.Key) {
	if f.load(d, v) {
		d.Use(f.data)
	}
}

func (f *namedFile) load(d *decoder, v decode.Value) bool {
	f.Value = v
	name, ok := d.TextOf(v, decode.FileName)
	if ok {
		f.name, f.data = d.Relative(name), d.Content(name)
	}
	return ok
}

// laterFile is a namedFile that is read again when it is needed, so that its entry is the same
// when only the content is another one.
type laterFile struct{ namedFile }

func (f *laterFile) read(d *decoder, v decode.Value, _ decode.Key) {
	if f.load(d, v) {
		d.Use([]byte(f.name))
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
	Cert       laterFile `yaml:"cert_file"`
	Key        laterFile `yaml:"key_file"`
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
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, RootCAs: d.pool(c.CA), Certificates: d.keyPair(c.Cert.namedFile, c.Key.namedFile)}
	if out.Certificates != nil {
		p := &clientPair{readFile: d.Env.ReadFile, cert: c.Cert.name, key: c.Key.name, last: &out.Certificates[0]}
		out.GetClientCertificate = p.certificate
	}
	return out
}

// clientPair is the certificate of a client, as its files are when a connection is made.
//
// Safe for concurrent use.
type clientPair struct {
	// Static after construction.
	readFile  func(name string) ([]byte, error)
	cert, key string // files

	mu   sync.Mutex       // guards what follows
	last *tls.Certificate // the last one that was whole
}

// certificate implements tls.Config.GetClientCertificate. While only one of the files has been replaced,
// the pair before is used.
func (p *clientPair) certificate(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cert, certErr := p.readFile(p.cert)
	key, keyErr := p.readFile(p.key)
	if certErr == nil && keyErr == nil {
		if pair, err := tls.X509KeyPair(cert, key); err == nil {
			p.last = &pair
		}
	}
	if r.SupportsCertificate(p.last) != nil {
		return new(tls.Certificate), nil // none, as without this function
	}
	return p.last, nil
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
