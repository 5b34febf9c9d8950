//go:build servers

package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// give writes a file of the server into its data directory.
func (d *database) give(name string, content []byte) {
	d.t.Helper()
	dir := d.query("SHOW data_directory")
	info, err := os.Stat(dir)
	if err != nil {
		d.t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		d.t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
		d.t.Fatal(err)
	}
}

// TestLogin: over TLS with an authority, and with a password that rotates.
func TestLogin(t *testing.T) {
	d := newDatabase(t, realserver.StartPostgres(t))
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	pair := web.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	d.give("server.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	d.give("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	d.give("pg_hba.conf", []byte("host all postgres 127.0.0.1/32 trust\nhostssl all wt 127.0.0.1/32 scram-sha-256\n"))
	d.exec("ALTER ROLE wt PASSWORD 'first secret'")
	d.exec("ALTER SYSTEM SET ssl = on")
	d.exec("SELECT pg_reload_conf()")
	for d.query("SELECT count(*) FROM pg_hba_file_rules WHERE error IS NULL AND type = 'hostssl'")+d.query("SHOW ssl") != "1on" {
	}
	d.close() // the next connection has the settings

	secret := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first secret")
	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	login := func(config *tls.Config, mode string) *Source {
		u := d.upstream(d.server.Addr(), func(c *Config) {
			c.PasswordFile, c.TLS = secret, config
			c.URL = strings.Replace(c.URL, "sslmode=disable", "sslmode="+mode, 1)
		})
		source, err := u.Source(Table{Name: "items"})
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	source := login(&tls.Config{RootCAs: trusted}, "disable")
	f := follow(t, source, nil)
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	if got := d.query("SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename = 'wt'"); got != "t" {
		t.Error("a connection is not secured")
	}
	f.stop()
	follow(t, login(&tls.Config{RootCAs: x509.NewCertPool()}, "prefer"), nil).mustEnd("certificate signed by unknown authority")
	follow(t, login(nil, "disable"), nil).mustEnd("no pg_hba.conf entry")

	d.exec("ALTER ROLE wt PASSWORD 'second secret'")
	refused := follow(t, source, nil)
	refused.mustEnd("password authentication failed")
	if strings.Contains(refused.err.Error(), "secret") {
		t.Errorf("the error has the password: %v", refused.err)
	}
	write("second secret")
	again := follow(t, source, nil)
	again.await("a snapshot", func() bool { return len(again.Commits()) > 0 })
}
